/** The curves of a run's evaluations. */
import type { Evaluation, EvaluationSource } from "@/api/types";
import { matcher } from "@/lib/seriesSections";
import { EVALUATION_SERIES } from "./seriesGroups";

/** The mean return; every other curve is a metric of a supervised model. */
export const RETURN = "mean";

interface Charted {
  of: EvaluationSource;
  curves: string[];
}

/** The sources with evaluations, except tests, which have one point only. */
export function listChartedSources(
  evaluations: readonly Evaluation[],
  query: string | undefined,
): Charted[] {
  const matches = matcher(query);
  const all = (["evaluation", "stochastic", "greedy", "train_data"] as const).map((of) => ({
    of,
    curves: buildCurves(evaluations.filter((one) => one.source === of)).filter((curve) =>
      matches(`${EVALUATION_SERIES[of]}/${curve}`),
    ),
  }));
  return all.filter((one) => one.curves.length > 0);
}

/** Returns the curves of a source: the return with the range of its episodes, or every metric. */
function buildCurves(evaluations: readonly Evaluation[]): string[] {
  const metrics = listMetrics(evaluations);
  return metrics.length > 0 ? metrics : evaluations.length > 0 ? [RETURN] : [];
}

export function listMetrics(evaluations: readonly Evaluation[]): string[] {
  return [...new Set(evaluations.flatMap((one) => Object.keys(one.metrics)))].sort();
}

export function pointOf(evaluation: Evaluation, curve: string): number | string {
  return curve === RETURN ? evaluation.mean : (evaluation.metrics[curve] ?? Number.NaN);
}
