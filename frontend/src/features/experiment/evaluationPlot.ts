import { listMeasures } from "@/api/definition";
import type { ExperimentDetail, GridGroup, Run, SeriesQuery, SeriesResult } from "@/api/types";
import type { PlotBand, PlotData, PlotMark, PlotSeries, PlotSource } from "@/charts";
import { alpha, chooseGroupColor, chooseMemberColor, emphasise, type Scheme } from "@/lib/color";
import { formatPlural } from "@/lib/format";
import { countVisibleBuckets } from "@/lib/visibleBuckets";

const MOST_SELECTED = 1000;
type Column = (number | null | undefined)[];
type Axis = "env_step" | "update" | "episode" | "wall" | "relative";

/**
 * The query of the learning curve in the visible range. Evaluations fall on multiples of a count or
 * soon after, so over that counter the count is the unit of the buckets: every evaluation gets its
 * own bucket, and seeds that evaluate at about the same step share one.
 */
export function buildEvaluationRequest(
  experiment: ExperimentDetail,
  runs: readonly Run[],
  axis: Axis,
  carry: boolean,
  range: { start?: number | undefined; end?: number | undefined } = {},
): SeriesQuery {
  const { counter, evaluateEvery: every, series } = listMeasures(experiment.definition);
  const ids = runs.slice(0, MOST_SELECTED).map((run) => run.id);
  return {
    select: ids.map((run_id) => ({ run_id, series })),
    groups: ids.length > 0 ? [{ name: "mean", run_ids: ids, series, carry_forward: carry }] : [],
    x: axis,
    start: range.start ?? null,
    end: range.end ?? null,
    buckets: countVisibleBuckets(),
    unit: axis === counter && every ? every : 1,
    columns: ["mean"],
    statistics: ["mean", "interval"],
  };
}

interface EvaluationPlot {
  source: PlotSource;
  series: PlotSeries[];
  bands: PlotBand[];
  /** Where the number of seeds of the mean changes. */
  marks: PlotMark[];
  note(index: number): string | null;
  /** Fewest and most seeds that the mean is over. */
  n: { least: number; most: number };
}

/** Columns and styles of the chart: the band's edges, every seed, the mean on top. */
export function buildEvaluationPlot(
  result: SeriesResult,
  group: string,
  runs: readonly Run[],
  scheme: Scheme,
  seeds: boolean,
): EvaluationPlot {
  const base = chooseGroupColor(group, scheme);
  const strong = result.series.length > 1 ? emphasise(group, scheme) : base;
  const order = new Map(runs.map((run, index) => [run.id, { run, index }]));
  const mean = result.groups[0];
  const columns: Column[] = [];
  const series: PlotSeries[] = [];
  const bands: PlotBand[] = [];
  const add = (column: Column, look: PlotSeries) => {
    columns.push(column);
    series.push(look);
  };
  if (mean) {
    // The band is drawn between points, except where the mean is over fewer than three seeds.
    const edge = (column: (number | null)[]) =>
      column.map((y, i) => (mean.n[i] === 0 ? undefined : y));
    add(edge(mean.high), { label: "high", color: base, edge: true, gaps: true });
    add(edge(mean.low), { label: "low", color: base, edge: true, gaps: true });
    bands.push({ high: 0, low: 1, fill: alpha(base, scheme === "light" ? 0.16 : 0.22) });
  }
  const dots = result.grid.length <= 40;
  for (const one of seeds ? result.series : []) {
    const member = order.get(one.run_id);
    if (member === undefined) continue;
    const color = chooseMemberColor(group, member.index, runs.length, scheme);
    const look = { color: alpha(color, runs.length > 20 ? 0.32 : 0.75), width: 1.1 };
    add(one.mean, { label: `seed ${member.run.seed}`, ...look });
  }
  if (mean) {
    const { all, some } = meanColumns(mean, result.series.length);
    if (some.some((y) => y !== null))
      add(some, { label: "mean of fewer seeds", color: strong, width: 2.2, dash: [5, 4] });
    add(all, { label: "mean", color: strong, width: 2.6, dots });
  }
  const kept = filledBuckets(columns, result.grid);
  const pick = <Item>(column: readonly Item[]) => kept.map((i) => column[i] as Item);
  const data: PlotData = [pick(result.grid), ...columns.map(pick)];
  const counts = mean
    ? kept.map((i) => ({
        x: result.grid[i] ?? 0,
        n: mean.n[i] ?? 0,
        carried: mean.carried[i] ?? 0,
      }))
    : [];
  const points = result.series.reduce((sum, one) => sum + one.points, 0);
  return {
    source: { read: () => ({ data, points }), watch: () => () => undefined },
    series,
    bands,
    marks: findCountChanges(counts),
    note: (index) => remark(counts[index], result.series.length),
    n: range(counts),
  };
}

interface Count {
  x: number;
  /** Runs that the mean is over. */
  n: number;
  /** Finished runs among them, which count with their last value. */
  carried: number;
}

/** The places half-way between two points of the mean over different numbers of runs. */
export function findCountChanges(counts: readonly Count[]): PlotMark[] {
  const known = counts.filter((one) => one.n > 0);
  return known.flatMap((one, i) => {
    const before = known[i - 1];
    if (before === undefined || before.n === one.n) return [];
    return [{ x: (before.x + one.x) / 2, label: `n = ${one.n}` }];
  });
}

export function remark(count: Count | undefined, seeds: number): string | null {
  if (count === undefined || count.n === 0) return null;
  const carried = count.carried > 0 ? `, ${count.carried} carried forward` : "";
  return `n = ${count.n} of ${formatPlural(seeds, "seed")}${carried}`;
}

function range(counts: readonly Count[]): { least: number; most: number } {
  const known = counts.map((one) => one.n).filter((n) => n > 0);
  return known.length > 0
    ? { least: Math.min(...known), most: Math.max(...known) }
    : { least: 0, most: 0 };
}

/**
 * The mean, in two parts: where every seed has a value, and where only some have. A mean over fewer
 * seeds jumps when the number of seeds changes, without any change in learning.
 */
function meanColumns(
  mean: GridGroup,
  seeds: number,
): { all: (number | null)[]; some: (number | null)[] } {
  const complete = mean.n.map((n) => n === seeds);
  const known = [...mean.mean.keys()].filter((i) => mean.mean[i] !== null);
  const joint = new Set(
    known.filter(
      (i, k) =>
        complete[known[k - 1] ?? i] !== complete[i] || complete[known[k + 1] ?? i] !== complete[i],
    ),
  );
  return {
    all: mean.mean.map((y, i) => (complete[i] ? y : null)),
    some: mean.mean.map((y, i) => (complete[i] && !joint.has(i) ? null : y)),
  };
}

/** Indices of the buckets in which a curve has a value. */
function filledBuckets(columns: readonly Column[], grid: readonly number[]): number[] {
  return [...grid.keys()].filter((i) =>
    columns.some((column) => column[i] !== null && column[i] !== undefined),
  );
}
