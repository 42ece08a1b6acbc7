import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { actOnJobs, changeJob, reorderJob } from "@/api/actions";
import { keys } from "@/api/queries";
import type { Job, JobChange, JobSelection, JobsActed, PriorityClass } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { runDelayed } from "@/ui/delayedAction";
import { showUndo } from "@/ui/undoNotification";
import { findMoveBack, type Move, type OwnOrder } from "./ownOrder";

/** Jobs to act on, and how to name them. */
export interface Selection {
  /** Slug of the project that the jobs are limited to; `null` for none. */
  project: string | null;
  selection: JobSelection;
}

const DONE = { pause: "paused", cancel: "cancelled", resume: "resumed" } as const;

/** What the queue page does with jobs; each action says what happened and can be undone. */
export function useQueueActions() {
  const client = useQueryClient();
  const refresh = async () => {
    for (const queryKey of [keys.waiting, keys.jobs, keys.pools, keys.overview])
      void client.invalidateQueries({ queryKey });
  };
  const attempt = async (action: () => Promise<unknown>) => {
    try {
      await action();
    } catch (error) {
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error instanceof Error ? error.message : String(error),
      });
    }
    await refresh();
  };
  const sayRefused = ({ refused }: JobsActed) => {
    const [first] = refused;
    if (first === undefined) return;
    notifications.show({
      color: "red",
      title: `${formatPlural(refused.length, "job")} could not be changed`,
      message: first.detail,
    });
  };
  return {
    /** Moves a job; undone by a move back, or where that is not known by nothing. */
    move: (order: OwnOrder, job: Job, move: Move) =>
      attempt(async () => {
        const back = findMoveBack(order, job);
        await reorderJob(job.id, move.before);
        if (back === null) notifications.show({ message: "The job was moved" });
        else
          showUndo("The job was moved", () => void attempt(() => reorderJob(job.id, back.before)));
      }),
    /** Says that a job was changed, and offers to undo it. */
    changed: (job: Job, change: JobChange) => {
      const before = invertChange(job, change);
      showUndo("The job was changed", () => void attempt(() => changeJob(job.id, before)));
      void refresh();
    },
    /** Pauses or cancels jobs some seconds later: neither gives the jobs' places back. */
    end: (verb: "pause" | "cancel", count: number, { project, selection }: Selection) =>
      runDelayed(
        `${formatPlural(count, "job")} will be ${DONE[verb]}`,
        () => void attempt(async () => sayRefused(await actOnJobs(project, verb, selection))),
      ),
    /** Gives jobs another class; undone by their former classes. */
    reclass: (to: PriorityClass, { project, selection }: Selection, jobs: readonly Job[]) =>
      attempt(async () => {
        const former = new Map(jobs.map((job) => [job.id, job.priority_class]));
        const change = { priority_class: to };
        const acted = await actOnJobs(project, "change", selection, { change });
        sayRefused(acted);
        if (acted.done.length === 0) return;
        const back = groupByClass(acted.done, former, selection.priority_class ?? undefined);
        showUndo(
          `${formatCount(acted.done.length)} moved to the class ${to}`,
          () =>
            void attempt(async () => {
              for (const [priority_class, ids] of back)
                for (const some of splitInto(ids, 1_000))
                  await actOnJobs(null, "change", { jobs: some }, { change: { priority_class } });
            }),
        );
      }),
    count: (verb: "pause" | "cancel" | "change", { project, selection }: Selection) =>
      actOnJobs(project, verb, selection, {
        dryRun: true,
        ...(verb === "change" ? { change: { priority_class: "normal" as const } } : {}),
      }),
  };
}

/** The change that undoes a change of a job. */
export function invertChange(job: Job, change: JobChange): JobChange {
  return {
    ...("priority_class" in change ? { priority_class: job.priority_class } : {}),
    ...("priority" in change ? { priority: job.priority } : {}),
    ...(change.limits
      ? {
          limits: Object.fromEntries(
            Object.keys(change.limits).map((name) => [
              name,
              job.limits[name as keyof Job["limits"]] ?? null,
            ]),
          ) as JobChange["limits"],
        }
      : {}),
  } as JobChange;
}

function groupByClass(
  ids: readonly string[],
  former: ReadonlyMap<string, PriorityClass>,
  otherwise: PriorityClass | undefined,
): Map<PriorityClass, string[]> {
  const found = new Map<PriorityClass, string[]>();
  for (const id of ids) {
    const one = former.get(id) ?? otherwise;
    if (one !== undefined) found.set(one, [...(found.get(one) ?? []), id]);
  }
  return found;
}

function splitInto(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, i) =>
    ids.slice(i * size, (i + 1) * size),
  );
}
