/** The queries of the board's panels. */
import type { Measures } from "@/api/definition";
import type { Run, SeriesQuery } from "@/api/types";
import type { Aggregate, Band, BoardAxis } from "./boardSearch";

/** What all panels show. Two views with equal members have equal curves. */
export interface BoardView {
  /** Runs whose curves are drawn. */
  runs: readonly string[];
  /** The runs of the groups: a filter of the list of runs, whichever runs are drawn. */
  filter: string;
  groupBy: readonly string[];
  axis: BoardAxis;
  start?: number | undefined;
  end?: number | undefined;
  buckets: number;
  aggregate: Aggregate;
  band: Band;
  /** Whether runs that ended count on with their last value in their group. */
  carry: boolean;
  /** Whether runs are drawn behind their groups. */
  faint: boolean;
  /** Distance of two evaluations and its counter, which is the width of their buckets. */
  evaluations: { counter: "env_step" | "update"; every: number } | null;
}

type Statistic = NonNullable<SeriesQuery["statistics"]>[number];

const MOST_CURVES = 2_000;
const MOST_SELECTED = 1_000;
const MOST_CELLS = 1_500_000;
/** Intervals take most of the server's time, per bucket and group. */
const BUCKETS_WITH_INTERVALS = 200;
/** Evaluations of seeds share a bucket of a time axis only if it is wide. */
const BUCKETS_OF_TIMED_EVALUATIONS = 60;
const EVALUATIONS = /^evaluation(_on_train_data|_of_test|_stochastic|_greedy)?\//;

export function isEvaluation(name: string): boolean {
  return EVALUATIONS.test(name);
}

/** A filter for the groups' runs: that of the page, in the project that is shown. */
export function buildGroupFilter(filter: string, project: string | null): string {
  const terms = [project === null ? "" : `project:${project}`, filter.trim()];
  return terms.filter((one) => one !== "").join(" ") || "seed>=0";
}

/** Divides names of series into those of one query each. */
export function divideNames(view: BoardView, names: readonly string[]): string[][] {
  const runs = Math.max(1, view.runs.length);
  const curves = view.groupBy.length > 0 ? MOST_SELECTED : MOST_CURVES;
  const most = Math.max(1, Math.floor(Math.min(curves / runs, MOST_CELLS / (runs * view.buckets))));
  const parts = [names.filter(isEvaluation), names.filter((name) => !isEvaluation(name))];
  return parts.flatMap((part) =>
    Array.from({ length: Math.ceil(part.length / most) }, (_, i) =>
      part.slice(i * most, (i + 1) * most),
    ),
  );
}

/** The query of some panels, all of evaluations or none. */
export function buildBoardQuery(view: BoardView, names: readonly string[]): SeriesQuery {
  const grouped = view.groupBy.length > 0;
  const statistics = grouped ? listStatistics(view.aggregate, view.band) : [];
  const query: SeriesQuery = {
    names: [...names],
    x: view.axis,
    start: view.start ?? null,
    end: view.end ?? null,
    columns: ["mean"],
    statistics,
    ...chooseBuckets(view, names.every(isEvaluation), statistics),
  };
  if (!grouped) return { ...query, runs: [...view.runs] };
  const drawn = view.faint
    ? view.runs.flatMap((run_id) => names.map((series) => ({ run_id, series })))
    : [];
  return {
    ...query,
    filter: view.filter,
    group_by: [...view.groupBy],
    carry_forward: view.carry,
    show_runs: false,
    select: drawn,
  };
}

/**
 * The least distance of two evaluations of some definitions. `null` while no run has come so far:
 * all its evaluations would lie in the bucket at 0.
 */
export function findEvaluationDistance(
  measures: readonly Pick<Measures, "counter" | "evaluateEvery">[],
  progress: readonly Pick<Run["progress"], "env_step" | "update">[],
): BoardView["evaluations"] {
  const counter = measures[0]?.counter;
  if (counter === undefined) return null;
  // Evaluations that are further apart than the closest ones have buckets of their own in any case.
  const known = measures.flatMap((one) =>
    one.counter === counter && one.evaluateEvery !== null ? [one.evaluateEvery] : [],
  );
  const every = Math.min(...known);
  const isReached = progress.some((one) => one[counter] >= every);
  return isReached ? { counter, every } : null;
}

function listStatistics(aggregate: Aggregate, band: Band): Statistic[] {
  const wanted: Record<Band, Statistic[]> = {
    none: [],
    stdev: ["mean", "stdev"],
    stderr: ["mean", "stderr"],
    range: ["min", "max"],
    interval: hasInterval(aggregate) ? [aggregate === "iqm" ? "iqm_interval" : "interval"] : [],
  };
  return [...new Set<Statistic>([aggregate, ...wanted[band]])];
}

/** Whether the server has an interval of the aggregate; it has none of the median. */
export function hasInterval(aggregate: Aggregate): boolean {
  return aggregate !== "median";
}

function chooseBuckets(
  view: BoardView,
  ofEvaluations: boolean,
  statistics: readonly Statistic[],
): Pick<SeriesQuery, "buckets" | "unit"> {
  const costly = statistics.some((one) => one.endsWith("interval"));
  const buckets = costly ? Math.min(view.buckets, BUCKETS_WITH_INTERVALS) : view.buckets;
  if (!ofEvaluations || view.groupBy.length === 0) return { buckets };
  const { evaluations, axis } = view;
  if (evaluations !== null && evaluations.counter === axis)
    return { buckets, unit: evaluations.every };
  return { buckets: Math.min(buckets, BUCKETS_OF_TIMED_EVALUATIONS) };
}
