import { percent } from "./format";

interface RunEnd {
  state: string;
  cause: string | null;
  fraction: number | null;
}

export interface Progress {
  /** How far the bar reaches, in [0, 1]; `null` where nothing bounds the run. */
  share: number | null;
  /** In a word or two. */
  text: string;
  /** In a sentence, where there is more to say. */
  hint: string | null;
  tone: "alive" | "done" | "still";
}

/**
 * How far a run is. One that succeeded is complete, however much of its budget it left: the bar of
 * a run that stopped at its target is full and says so.
 */
export function progressOf({ state, cause, fraction }: RunEnd): Progress {
  const used = fraction === null ? "" : ` after ${percent(fraction)} of its budget`;
  if (state !== "succeeded")
    return {
      share: fraction,
      text: percent(fraction),
      hint: null,
      tone: state === "running" ? "alive" : "still",
    };
  if (cause === "success_score")
    return { share: 1, text: "target", hint: `Stopped at its target score${used}`, tone: "done" };
  const whole = fraction === null || fraction >= 1;
  return {
    share: 1,
    text: "done",
    hint: whole ? "Used its whole budget" : `Ended${used}`,
    tone: "done",
  };
}
