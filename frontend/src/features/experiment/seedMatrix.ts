/** The matrix of an experiment's seeds and the states of their runs. */
import type { Run, RunState } from "@/api/types";

const ORDER: readonly RunState[] = [
  "queued",
  "running",
  "paused",
  "succeeded",
  "failed",
  "cancelled",
];
/** Number of seeds beyond the highest that are offered, and most missing ones that are shown. */
const FURTHER = 2;
const MOST_MISSING = 50;

export interface MatrixColumn {
  seed: number;
  /** `null` where the experiment has no run of the seed. */
  run: Run | null;
}

/** A column for each run by seed, and for seeds between them and after them without a run. */
export function buildMatrixColumns(runs: readonly Run[]): MatrixColumn[] {
  const used = new Set(runs.map((run) => run.seed));
  const highest = Math.max(-1, ...used);
  const missing: MatrixColumn[] = [];
  for (let seed = 0; seed <= highest && missing.length < MOST_MISSING; seed += 1)
    if (!used.has(seed)) missing.push({ seed, run: null });
  for (let i = 1; i <= FURTHER; i += 1) missing.push({ seed: highest + i, run: null });
  const columns = [...runs.map((run) => ({ seed: run.seed, run })), ...missing];
  return columns.sort((a, b) => a.seed - b.seed);
}

/** The states that some run has, in the order of a run's life, and always the usual end. */
export function listMatrixStates(runs: readonly Run[]): RunState[] {
  const known = new Set(runs.map((run) => run.state));
  const others = [...known].filter((state) => !ORDER.includes(state));
  return [...ORDER.filter((state) => known.has(state) || state === "succeeded"), ...others];
}
