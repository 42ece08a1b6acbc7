/**
 * The fence chain of a run, by the server's rule: the newest training attempt and the snapshots
 * from which it and its predecessors resumed. An attempt that resumed from a snapshot continues
 * that snapshot's history and supersedes the points after it.
 */
import { selectTrainingAttempts } from "@/api/schedules";
import type { RunDetail, Snapshot } from "@/api/types";

export interface Position {
  envStep: number;
  update: number;
}

/**
 * By fence, the last position that counts; `null` for no bound. All points of an earlier fence that
 * is not a key are superseded.
 */
export interface Chain {
  counted: ReadonlyMap<number, Position | null>;
  newest: number;
}

export const NO_CHAIN: Chain = { counted: new Map(), newest: 0 };

function earlier(one: Position | null, other: Position | null): Position | null {
  if (one === null || other === null) return one ?? other;
  if (one.envStep !== other.envStep) return one.envStep < other.envStep ? one : other;
  return one.update <= other.update ? one : other;
}

/**
 * Returns the chain, or `null` where an attempt resumed from a snapshot that is not in the list.
 */
export function buildFenceChain(
  run: Pick<RunDetail, "id" | "attempts" | "jobs">,
  snapshots: readonly Snapshot[],
): Chain | null {
  const runId = run.id;
  const bySnapshot = new Map(snapshots.map((snapshot) => [snapshot.id, snapshot]));
  const links = new Map(
    selectTrainingAttempts(run).map((attempt) => [
      attempt.fences[runId] ?? 0,
      attempt.resumed_from[runId] ?? null,
    ]),
  );
  links.delete(0);
  const newest = Math.max(0, ...links.keys());
  const counted = new Map<number, Position | null>();
  let bound: Position | null = null;
  let fence: number | undefined = newest;
  while (fence !== undefined && links.has(fence) && !counted.has(fence)) {
    counted.set(fence, bound);
    const resumed: string | null = links.get(fence) ?? null;
    const snapshot: Snapshot | undefined = resumed === null ? undefined : bySnapshot.get(resumed);
    if (resumed !== null && snapshot === undefined) return null;
    if (snapshot !== undefined)
      bound = earlier({ envStep: snapshot.env_step, update: snapshot.update }, bound);
    fence = snapshot?.fence;
  }
  return { counted, newest };
}

/** Whether a later attempt superseded the point that attempt `fence` wrote at this position. */
export function isSuperseded(
  chain: Chain,
  fence: number,
  envStep: number,
  update: number,
): boolean {
  if (chain.counted.size === 0 || fence > chain.newest) return false;
  const bound = chain.counted.get(fence);
  if (bound === undefined) return true;
  return (
    bound !== null &&
    (envStep > bound.envStep || (envStep === bound.envStep && update > bound.update))
  );
}
