import { reading } from "@/api/definition";
import type { ExperimentDetail, GridGroup, Run, SeriesQuery, SeriesResult } from "@/api/types";
import type { PlotBand, PlotData, PlotSeries, PlotSource } from "@/charts";
import { alpha, emphasis, groupColor, memberColor, type Scheme } from "@/lib/color";

const MOST_BUCKETS = 1000;
const PLAIN_BUCKETS = 300;
const MOST_SELECTED = 1000;
type Axis = "env_step" | "update" | "episode" | "wall";

/**
 * The query of the learning curve. Evaluations fall on multiples of a count, so over that counter the buckets are centred
 * on them: every evaluation gets its own bucket, and seeds that evaluate at the same step share one.
 */
export function evaluationRequest(experiment: ExperimentDetail, runs: readonly Run[], axis: Axis): SeriesQuery {
  const { counter, evaluateEvery: every, series } = reading(experiment.definition);
  const ids = runs.slice(0, MOST_SELECTED).map((run) => run.id);
  const base: SeriesQuery = {
    select: ids.map((run_id) => ({ run_id, series })),
    groups: ids.length > 0 ? [{ name: "mean", run_ids: ids as [string, ...string[]], series }] : [],
    x: axis,
    start: null,
    end: null,
    buckets: PLAIN_BUCKETS,
    include_superseded: false,
  };
  if (axis !== counter || !every) return base;
  const last = Math.max(...runs.map((run) => run.latest_evaluation?.[counter] ?? 0), every);
  const width = every * Math.max(1, Math.ceil(last / every / MOST_BUCKETS));
  const buckets = Math.ceil(last / width);
  return { ...base, buckets: buckets + 1, start: -width / 2, end: (buckets + 0.5) * width };
}

interface EvaluationPlot {
  source: PlotSource;
  series: PlotSeries[];
  bands: PlotBand[];
}

/** Columns and looks of the chart: the band's edges, every seed, the mean on top. */
export function evaluationPlot(
  result: SeriesResult,
  group: string,
  runs: readonly Run[],
  scheme: Scheme,
  seeds: boolean,
): EvaluationPlot {
  const base = groupColor(group, scheme);
  const strong = result.series.length > 1 ? emphasis(group, scheme) : base;
  const order = new Map(runs.map((run, index) => [run.id, { run, index }]));
  const mean = result.groups[0];
  const columns: (number | null)[][] = [];
  const series: PlotSeries[] = [];
  const bands: PlotBand[] = [];
  const add = (column: (number | null)[], look: PlotSeries) => {
    columns.push(column);
    series.push(look);
  };
  if (mean) {
    add(mean.high, { label: "high", color: base, edge: true });
    add(mean.low, { label: "low", color: base, edge: true });
    bands.push({ high: 0, low: 1, fill: alpha(base, scheme === "light" ? 0.16 : 0.22) });
  }
  const dots = result.grid.length <= 40;
  for (const one of seeds ? result.series : []) {
    const member = order.get(one.run_id);
    if (member === undefined) continue;
    const color = memberColor(group, member.index, runs.length, scheme);
    const look = { color: alpha(color, runs.length > 20 ? 0.32 : 0.75), width: 1.1 };
    add(one.mean, { label: `seed ${member.run.seed}`, ...look });
  }
  if (mean) {
    const { all, some } = meanColumns(mean, result.series.length);
    if (some.some((y) => y !== null))
      add(some, { label: "mean of fewer seeds", color: strong, width: 2.2, dash: [5, 4] });
    add(all, { label: "mean", color: strong, width: 2.6, dots });
  }
  const data = trimmed([result.grid, ...columns]);
  const points = result.series.reduce((sum, one) => sum + one.points, 0);
  return { source: { read: () => ({ data, points }), watch: () => () => undefined }, series, bands };
}

/**
 * The mean, in two parts: where every seed has a value, and where only some have. A mean over fewer seeds jumps when one joins
 * or ends, which says nothing about learning.
 */
function meanColumns(mean: GridGroup, seeds: number): { all: (number | null)[]; some: (number | null)[] } {
  const complete = mean.n.map((n) => n === seeds);
  const known = [...mean.mean.keys()].filter((i) => mean.mean[i] !== null);
  const joint = new Set(
    known.filter((i, k) => complete[known[k - 1] ?? i] !== complete[i] || complete[known[k + 1] ?? i] !== complete[i]),
  );
  return {
    all: mean.mean.map((y, i) => (complete[i] ? y : null)),
    some: mean.mean.map((y, i) => (complete[i] && !joint.has(i) ? null : y)),
  };
}

/** Leaves out the buckets where no curve has a value. */
function trimmed([grid, ...columns]: PlotData): PlotData {
  const kept = [...grid.keys()].filter((i) => columns.some((column) => column[i] !== null && column[i] !== undefined));
  return [kept.map((i) => grid[i] as number), ...columns.map((column) => kept.map((i) => column[i] ?? null))];
}
