/** Where a waiting job may be moved: among the jobs of its person, project, pool and class. Pure. */
import type { Job } from "@/api/types";

/** The job directly before which to start; `null`: after all others of the group. */
export interface Move {
  before: string | null;
}

/** Whether two jobs are ordered by their person alone. */
export function isSameGroup(a: Job, b: Job): boolean {
  return (
    a.pool === b.pool &&
    a.project === b.project &&
    a.created_by === b.created_by &&
    a.priority_class === b.priority_class
  );
}

function listGroup(jobs: readonly Job[], job: Job): readonly Job[] {
  return jobs.filter((one) => one.state === "queued" && isSameGroup(one, job));
}

/** The moves by the menu; a move that changes nothing is left out. */
export function listMoves(
  jobs: readonly Job[],
  job: Job,
): Partial<Record<"front" | "up" | "down" | "end", Move>> {
  const group = listGroup(jobs, job);
  const at = group.findIndex((one) => one.id === job.id);
  if (at < 0) return {};
  const moves: Partial<Record<"front" | "up" | "down" | "end", Move>> = {};
  if (at > 0) {
    moves.front = { before: group[0]?.id ?? null };
    moves.up = { before: group[at - 1]?.id ?? null };
  }
  if (at < group.length - 1) {
    moves.down = { before: group[at + 2]?.id ?? null };
    moves.end = { before: null };
  }
  return moves;
}

/** The move that takes a job back to where it is now. */
export function findMoveBack(jobs: readonly Job[], job: Job): Move {
  const group = listGroup(jobs, job);
  const at = group.findIndex((one) => one.id === job.id);
  return { before: group[at + 1]?.id ?? null };
}

/**
 * The move of a job that is dropped on the upper or lower half of another one's row; `null` if the
 * job may not be dropped there or would stay where it is.
 */
export function planDrop(
  jobs: readonly Job[],
  dragged: Job,
  target: Job,
  half: "upper" | "lower",
): Move | null {
  if (dragged.id === target.id || !isSameGroup(dragged, target)) return null;
  const others = listGroup(jobs, dragged).filter((one) => one.id !== dragged.id);
  const at = others.findIndex((one) => one.id === target.id);
  if (at < 0) return null;
  const before = others[half === "upper" ? at : at + 1]?.id ?? null;
  return findMoveBack(jobs, dragged).before === before ? null : { before };
}
