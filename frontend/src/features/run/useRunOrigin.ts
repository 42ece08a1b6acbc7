import { useQuery } from "@tanstack/react-query";
import { keys, querySeries, seriesNamesQuery } from "@/api/queries";
import type { SeriesQuery } from "@/api/types";

const MOST_NAMES = 100;
const BUCKETS = 1_500;

/**
 * The wall time of a run's first point, in seconds since the Unix epoch; `undefined` until it is
 * known. The first of 1,500 buckets with a point is divided again, which is exact to milliseconds
 * for a training of days.
 */
export function useRunOrigin(id: string, enabled: boolean): number | undefined {
  const names = useQuery({ ...seriesNamesQuery(id), staleTime: Number.POSITIVE_INFINITY, enabled });
  const known = names.data?.slice(0, MOST_NAMES).map((one) => one.name) ?? [];
  const origin = useQuery({
    queryKey: [...keys.run(id), "origin"],
    queryFn: async ({ signal }) => {
      const wide = await findFirst(id, known, {}, signal);
      if (wide === null) return null;
      const range = { start: wide.start, end: wide.start + wide.width };
      return (await findFirst(id, known, range, signal))?.start ?? wide.start;
    },
    enabled: enabled && known.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return enabled ? (origin.data ?? undefined) : undefined;
}

/** The first bucket of wall time that holds a point of any of the series. */
async function findFirst(
  id: string,
  names: string[],
  range: Pick<SeriesQuery, "start" | "end">,
  signal: AbortSignal,
): Promise<{ start: number; width: number } | null> {
  const found = await querySeries(
    { runs: [id], names, x: "wall", buckets: BUCKETS, columns: ["n"], ...range },
    signal,
  );
  const index = found.grid.findIndex((_, i) => found.series.some((one) => (one.n[i] ?? 0) > 0));
  return index < 0 ? null : { start: found.start + index * found.width, width: found.width };
}
