/** The rows of the table: runs, and groups that unfold to their runs. */
import type { Run, RunGroup } from "@/api/types";
import { identifyGroup } from "./groupKeys";

export type RunItem =
  | { kind: "run"; id: string; run: Run; isMember: boolean }
  | { kind: "group"; id: string; group: RunGroup; isOpen: boolean }
  | { kind: "note"; id: string; text: string };

export interface Members {
  runs: readonly Run[];
  isPending: boolean;
  /** Why they could not be read. */
  problem: string | null;
  hasMore: boolean;
}

export function listRunItems(runs: readonly Run[]): RunItem[] {
  return runs.map((run) => ({ kind: "run", id: run.id, run, isMember: false }));
}

/** Returns the rows of groups; below those that are open are their runs. */
export function listGroupItems(
  groups: readonly RunGroup[],
  opened: ReadonlyMap<string, Members>,
): RunItem[] {
  return groups.flatMap((group): RunItem[] => {
    const id = `group ${identifyGroup(group.by)}`;
    const members = opened.get(id);
    const head: RunItem = { kind: "group", id, group, isOpen: members !== undefined };
    if (members === undefined) return [head];
    const note = (text: string): RunItem => ({ kind: "note", id: `${id} note`, text });
    return [
      head,
      ...members.runs.map((run): RunItem => ({ kind: "run", id: run.id, run, isMember: true })),
      ...(members.problem !== null ? [note(members.problem)] : []),
      ...(members.isPending ? [note("Loading the runs…")] : []),
      ...(members.hasMore
        ? [note(`The first ${members.runs.length} runs; filter by the group to see all.`)]
        : []),
    ];
  });
}
