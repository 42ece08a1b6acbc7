/** Curves that are drawn from the list of evaluations. */

import type { EvaluationSource } from "@/api/types";

/** Prefixes of curves that are drawn from the list of evaluations, by source. */
export const EVALUATION_SERIES: Record<EvaluationSource, string> = {
  evaluation: "evaluation",
  train_data: "evaluation_on_train_data",
  test: "evaluation_of_test",
  stochastic: "evaluation_stochastic",
  greedy: "evaluation_greedy",
};

export function isOfEvaluations(name: string): boolean {
  return Object.values(EVALUATION_SERIES).some((prefix) => name.startsWith(`${prefix}/`));
}
