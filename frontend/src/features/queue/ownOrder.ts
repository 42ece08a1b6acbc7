/** Where a waiting job may be moved: among the jobs of its person, project, pool and class. Pure. */
import type { Job } from "@/api/types";

/** The job directly before which to start; `null`: after all others of the group. */
export interface Move {
  before: string | null;
}

export type Way = "front" | "up" | "down" | "end";

/** The waiting jobs that are ordered by their person alone, in their order. */
interface Group {
  ids: string[];
  places: Map<string, number>;
}

/** The groups of the loaded jobs. */
export interface OwnOrder {
  groups: ReadonlyMap<string, Group>;
  /** Whether more jobs wait than are loaded: the last loaded job may not be the last one. */
  isCut: boolean;
}

/** Whether two jobs are ordered by their person alone. */
export function isSameGroup(a: Job, b: Job): boolean {
  return keyOf(a) === keyOf(b);
}

/** Divides jobs, in the order in which they start, into groups. */
export function buildOwnOrder(jobs: readonly Job[], isCut = false): OwnOrder {
  const groups = new Map<string, Group>();
  for (const job of jobs) {
    if (job.state !== "queued") continue;
    const key = keyOf(job);
    let group = groups.get(key);
    if (group === undefined) {
      group = { ids: [], places: new Map() };
      groups.set(key, group);
    }
    group.places.set(job.id, group.ids.length);
    group.ids.push(job.id);
  }
  return { groups, isCut };
}

function keyOf(job: Job): string {
  return JSON.stringify([job.pool, job.project, job.created_by, job.priority_class]);
}

/** The moves by the menu; a move that changes nothing is left out. */
export function listMoves(order: OwnOrder, job: Job): Partial<Record<Way, Move>> {
  const { ids, at } = find(order, job);
  if (at < 0) return {};
  const moves: Partial<Record<Way, Move>> = {};
  if (at > 0) {
    moves.front = { before: ids[0] ?? null };
    moves.up = { before: ids[at - 1] ?? null };
  }
  const down = at + 1 < ids.length ? moveBefore(order, ids, at + 2) : null;
  if (down !== null) moves.down = down;
  if (order.isCut || at + 1 < ids.length) moves.end = { before: null };
  return moves;
}

/** The move that takes a job back to where it is now; `null` if that is not known. */
export function findMoveBack(order: OwnOrder, job: Job): Move | null {
  const { ids, at } = find(order, job);
  return at < 0 ? null : moveBefore(order, ids, at + 1);
}

/**
 * The move of a job that is dropped on the upper or lower half of another one's row; `null` if the
 * job may not be dropped there or would stay where it is.
 */
export function planDrop(
  order: OwnOrder,
  dragged: Job,
  target: Job,
  half: "upper" | "lower",
): Move | null {
  if (dragged.id === target.id || !isSameGroup(dragged, target)) return null;
  const { ids, at } = find(order, dragged);
  const over = find(order, target).at;
  if (at < 0 || over < 0) return null;
  const place = half === "upper" ? over : over + 1;
  if (place === at || place === at + 1) return null;
  return moveBefore(order, ids, place);
}

function find(order: OwnOrder, job: Job): { ids: readonly string[]; at: number } {
  const group = order.groups.get(keyOf(job));
  return { ids: group?.ids ?? [], at: group?.places.get(job.id) ?? -1 };
}

/** The move before the job at a place; `null` if that job is not loaded. */
function moveBefore(order: OwnOrder, ids: readonly string[], place: number): Move | null {
  const before = ids[place];
  if (before !== undefined) return { before };
  return order.isCut ? null : { before: null };
}
