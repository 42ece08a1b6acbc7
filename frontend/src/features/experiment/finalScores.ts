/** Final scores of an experiment beside those of its rivals. */
import { ApiError } from "@/api/client";
import type {
  ExperimentDetail,
  GroupStatistics,
  Run,
  StatisticsQuery,
  StatisticsResult,
} from "@/api/types";

/** Choices of the number of evaluations at the end of a run whose episodes are its score. */
export const LAST_EVALUATIONS = [1, 3, 10] as const;
const MOST_RUNS = 2_000;
const MOST_RIVALS = 4;

/** The scores of the experiment's runs, and with `rivals` of all others in its environment. */
export function buildScoresQuery(
  experiment: ExperimentDetail,
  runs: readonly Run[],
  last: number,
  rivals: boolean,
): StatisticsQuery {
  const ids = runs.slice(0, MOST_RUNS).map((run) => run.id);
  return {
    runs: ids,
    ...(rivals ? { filter: buildRivalFilter(experiment, last) } : {}),
    group_by: ["experiment"],
    score: { kind: "final", last, missing: "leave_out" },
    parts: ["aggregates"],
    aggregate: "iqm",
  };
}

/** Runs in the environment that have a score: a group without one would be refused. */
function buildRivalFilter({ project, env }: ExperimentDetail, last: number): string {
  const quoted = `"${env.replace(/["\\]/g, "\\$&")}"`;
  return `project:${project} env:${quoted} evaluation/mean.count>=${last}`;
}

/** Whether the server refuses to compare: too many runs, or none whose series are summarised. */
export function isRefused(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

export function isTooLarge(error: unknown): boolean {
  return error instanceof ApiError && error.code === "query_too_large";
}

export interface ShownScores {
  own: GroupStatistics | null;
  /** The best rivals, the best one first. */
  rivals: GroupStatistics[];
  /** Lowest and highest score of all that are shown. */
  domain: readonly [number, number];
}

/** The groups that the page shows. */
export function selectScores(result: StatisticsResult, id: string): ShownScores {
  const scored = result.groups.filter((one) => one.scores.length > 0);
  const own = scored.find((one) => one.by.experiment === id) ?? null;
  const rivals = scored
    .filter((one) => one !== own && one.aggregates.iqm !== undefined)
    .sort((a, b) => (b.aggregates.iqm?.value ?? 0) - (a.aggregates.iqm?.value ?? 0))
    .slice(0, MOST_RIVALS);
  const shown = own === null ? rivals : [own, ...rivals];
  const ends = shown.flatMap((one) => [
    ...one.scores.map((score) => score.score),
    one.aggregates.iqm?.low ?? Number.NaN,
    one.aggregates.iqm?.high ?? Number.NaN,
  ]);
  const known = ends.filter(Number.isFinite);
  return { own, rivals, domain: [Math.min(...known), Math.max(...known)] };
}
