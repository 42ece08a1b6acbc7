import type * as t from "../../src/api/types";
import type { MockRun } from "./points.ts";

type Points = MockRun["points"];

/** The server's common grid, simplified: the statistics are approximate. */
export function grid(
  query: t.SeriesQuery,
  points: (run: string) => Points | undefined,
): Omit<t.SeriesResult, "cursor"> {
  const x = query.x ?? "env_step";
  const axis = x === "relative" ? "wall" : x;
  const wanted = [
    ...(query.select ?? []),
    ...(query.groups ?? []).flatMap((group) =>
      group.run_ids.map((run_id) => ({ run_id, series: group.series })),
    ),
  ];
  const all = wanted.flatMap((one) => points(one.run_id)?.get(one.series)?.[axis] ?? []);
  const low = query.start ?? Math.min(...all, Number.POSITIVE_INFINITY);
  const high = query.end ?? Math.max(...all, Number.NEGATIVE_INFINITY);
  let width = 1;
  const count = () => Math.floor(high / width) - Math.floor(low / width) + 1;
  while (count() > (query.buckets ?? 1000)) width *= 2;
  const n = Number.isFinite(high - low) ? Math.max(1, count()) : 1;
  const start = Number.isFinite(low) ? Math.floor(low / width) * width : 0;
  const end = start + n * width;
  const centres = Array.from({ length: n }, (_, i) => start + width * i + (width - 1) / 2);
  const one = (run_id: string, series: string): t.GridSeries => {
    const cells: number[][] = Array.from({ length: n }, () => []);
    const columns = points(run_id)?.get(series);
    columns?.[axis].forEach((x, i) => {
      cells[Math.floor((x - start) / width)]?.push(columns.value[i] ?? 0);
    });
    const pick = (f: (cell: number[]) => number) =>
      cells.map((cell) => (cell.length ? f(cell) : null));
    const mean = pick((cell) => cell.reduce((a, b) => a + b, 0) / cell.length);
    return {
      run_id,
      series,
      min: pick((c) => Math.min(...c)),
      max: pick((c) => Math.max(...c)),
      mean,
      last: pick((c) => c.at(-1) ?? 0),
      n: cells.map((c) => c.length),
      nonfinite: cells.map(() => 0),
      points: cells.reduce((a, c) => a + c.length, 0),
    };
  };
  const groups = (query.groups ?? []).map((group): t.GridGroup => {
    const members = group.run_ids.map((run) => one(run, group.series).mean);
    const cells = centres.map((_, i) =>
      members.map((m) => m[i]).filter((v): v is number => v !== null && v !== undefined),
    );
    const pick = (f: (cell: number[]) => number, least = 1) =>
      cells.map((c) => (c.length >= least ? f(c) : null));
    const mean = (c: number[]) => c.reduce((a, b) => a + b, 0) / c.length;
    const stdev = (c: number[]) =>
      Math.sqrt(c.reduce((a, b) => a + (b - mean(c)) ** 2, 0) / Math.max(1, c.length - 1));
    const half = (c: number[]) => (1.96 * stdev(c)) / Math.sqrt(c.length);
    return {
      name: group.name,
      series: group.series,
      mean: pick(mean),
      median: pick(mean),
      stdev: pick(stdev, 2),
      min: pick((c) => Math.min(...c)),
      max: pick((c) => Math.max(...c)),
      low: pick((c) => mean(c) - half(c), 3),
      high: pick((c) => mean(c) + half(c), 3),
      n: cells.map((c) => c.length),
      carried: cells.map(() => 0),
    };
  });
  return {
    x,
    grid: centres,
    start,
    end,
    width,
    series: (query.select ?? []).map((s) => one(s.run_id, s.series)),
    groups,
  };
}
