/** What the figures share: their groups, and sentences of their captions. */
import type { StatisticsQuery, StatisticsResult } from "@/api/types";

export interface Group {
  name: string;
  color: string;
  dash: string | undefined;
}

export interface FigureProps {
  result: StatisticsResult;
  groups: readonly Group[];
  names: ReadonlyMap<string, string>;
  request: { path: string; body: StatisticsQuery };
}

export function describeScore({ method }: StatisticsResult): string {
  const scale =
    method.normalisation === null
      ? "raw returns"
      : `normalised by the ${method.normalisation.replace(/^([a-z]+-[a-z0-9-]+):/, "table $1:")}`;
  return `Score of a run: ${method.score}; ${scale}.`;
}

export function describeInterval(
  { method }: StatisticsResult,
  resamples = method.resamples,
): string {
  const level = Number((100 * method.level).toPrecision(6));
  return (
    `${level} % stratified bootstrap intervals: ${resamples} resamples of the seeds within each ` +
    `environment, RNG seed ${method.rng_seed}.`
  );
}
