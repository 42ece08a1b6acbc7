import { formatPercent } from "./format";

interface RunEnd {
  state: string;
  cause: string | null;
  fraction: number | null;
}

export interface Progress {
  /** Filled part of the bar, in [0, 1]; `null` where nothing bounds the run. */
  share: number | null;
  /** In a word or two. */
  text: string;
  /** In a sentence, where there is more to say. */
  hint: string | null;
  tone: "active" | "done" | "idle";
}

/**
 * The progress of a run. A run that succeeded is complete, also where it stopped at its target
 * before the end of its budget.
 */
export function computeProgress({ state, cause, fraction }: RunEnd): Progress {
  const used = fraction === null ? "" : ` after ${formatPercent(fraction)} of its budget`;
  if (state !== "succeeded")
    return {
      share: fraction,
      text: formatPercent(fraction),
      hint: null,
      tone: state === "running" ? "active" : "idle",
    };
  if (cause === "success_score")
    return { share: 1, text: "target", hint: `Stopped at its target score${used}`, tone: "done" };
  const usedBudget = fraction === null || fraction >= 1;
  return {
    share: 1,
    text: "done",
    hint: usedBudget ? "Used all of its budget" : `Ended${used}`,
    tone: "done",
  };
}
