import { toNumber } from "@/lib/format";
import type { PointColumns } from "./seriesRing";

interface Listed {
  name: string;
  last_value: number | string | null;
}

interface Bucketed {
  series: string;
  last: readonly (number | null)[];
}

/**
 * The newest measured value of each series, as it was written: neither smoothed nor the mean of a
 * bucket, and independent of the visible range.
 */
export class LatestValues {
  readonly #values = new Map<string, number>();

  of(series: string): number | null {
    return this.#values.get(series) ?? null;
  }

  /** Takes values of the server's list of series, for series without a newer value. */
  list(listed: readonly Listed[]): void {
    for (const { name, last_value } of listed)
      if (last_value !== null && !this.#values.has(name))
        this.#values.set(name, toNumber(last_value));
  }

  /** Takes the last values of a history that ends with the run's newest point. */
  history(series: readonly Bucketed[]): void {
    for (const one of series) {
      const last = one.last.findLast((value) => value !== null);
      if (last !== undefined && last !== null) this.#values.set(one.series, last);
    }
  }

  points(series: string, points: PointColumns): void {
    const last = points.value.at(-1);
    if (last !== undefined) this.#values.set(series, toNumber(last));
  }
}
