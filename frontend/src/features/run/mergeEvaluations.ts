import type { Evaluation } from "@/api/types";
import { toNumber } from "@/lib/format";

/**
 * Merges evaluations of the same state into one over all their episodes: the training and a job may
 * both have evaluated it.
 */
export function mergeEvaluations(evaluations: readonly Evaluation[]): Evaluation[] {
  const states = new Map<string, Evaluation>();
  for (const one of evaluations) {
    const state = `${one.env_step}/${one.update}`;
    const before = states.get(state);
    states.set(state, before ? together(before, one) : one);
  }
  return [...states.values()];
}

function together(a: Evaluation, b: Evaluation): Evaluation {
  const episodes = a.episodes + b.episodes;
  return {
    ...a,
    episodes,
    mean: (toNumber(a.mean) * a.episodes + toNumber(b.mean) * b.episodes) / episodes,
    min: Math.min(toNumber(a.min), toNumber(b.min)),
    max: Math.max(toNumber(a.max), toNumber(b.max)),
    superseded: a.superseded && b.superseded,
  };
}
