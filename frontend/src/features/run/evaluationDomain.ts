import type { Evaluation } from "@/api/types";
import { toNumber } from "@/lib/format";

export type Domain = readonly [number, number];

/** Returns one scale for all rows, so that they can be compared. */
export function computeDomain(rows: readonly Evaluation[]): Domain {
  const ends = rows
    .flatMap((row) => [toNumber(row.min), toNumber(row.max)])
    .filter(Number.isFinite);
  return [Math.min(0, ...ends), Math.max(...ends, Number.MIN_VALUE)];
}
