/**
 * What a training is measured in, by the kind of its definition: the counter of the x axis and the
 * score of its evaluations.
 */
import type { Evaluation, RunDetail } from "./types";

export type Definition = RunDetail["definition"];

export interface Measures {
  /** The counter of budget and intervals. */
  counter: "env_step" | "update";
  /** Name of the counter, in the plural. */
  unit: string;
  /** Name of the score: the return, or a metric of a supervised model. */
  score: string;
  /** The score's curve. */
  series: string;
  /** The metric that is the score; `null` in reinforcement learning. */
  metric: string | null;
  /** -1 where the score is minus the metric. */
  sign: 1 | -1;
  budget: number | null;
  evaluateEvery: number | null;
  saveEvery: number | null;
  /** Whether a run may end before its budget, at a target score. */
  stopsEarly: boolean;
}

export function listMeasures(definition: Definition): Measures {
  if (definition.kind === "rl") {
    return {
      counter: "env_step",
      unit: "env steps",
      score: "return",
      series: "evaluation/mean",
      metric: null,
      sign: 1,
      budget: definition.loop.env_steps ?? null,
      evaluateEvery: definition.evaluation?.every_env_steps ?? null,
      saveEvery: definition.snapshot?.every_env_steps ?? null,
      stopsEarly: typeof definition.stop?.success_score === "number",
    };
  }
  const metric = definition.evaluation?.metric ?? "loss";
  return {
    counter: "update",
    unit: "updates",
    score: metric,
    series: `evaluation/${metric}`,
    metric,
    sign: definition.evaluation?.goal === "maximize" ? 1 : -1,
    budget: definition.loop.updates,
    evaluateEvery: definition.evaluation?.every_updates ?? null,
    saveEvery: definition.snapshot?.every_updates ?? null,
    stopsEarly: typeof definition.stop?.success_score === "number",
  };
}

/** Whether scores follow actions that are drawn from the policy, instead of greedy ones. */
export function scoresDrawn(definition: Definition): boolean {
  return definition.kind === "rl" && definition.evaluation?.policy === "stochastic";
}

/** The score of an evaluation. */
export function readScore(evaluation: Evaluation, { metric }: Measures): number | string {
  return metric === null ? evaluation.mean : (evaluation.metrics[metric] ?? evaluation.mean);
}
