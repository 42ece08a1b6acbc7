import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { actOnRuns } from "@/api/runActions";
import type { RunSelection, RunsActed, RunVerb } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { runDelayed } from "@/ui/delayedAction";
import { showUndo } from "@/ui/undoNotification";

export const DONE: Record<RunVerb, string> = {
  pause: "paused",
  resume: "resumed",
  cancel: "cancelled",
  retry: "retried",
};
/** Runs that one request may name. */
const MOST_NAMED = 1_000;

/** What is done with many runs; each action says what happened and can be undone. */
export function useRunActions(project: string) {
  const client = useQueryClient();
  const refresh = () => {
    for (const queryKey of [keys.runLists, keys.runGroups, keys.jobs, keys.overview])
      void client.invalidateQueries({ queryKey });
  };
  const attempt = async (action: () => Promise<void>) => {
    try {
      await action();
    } catch (error) {
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error instanceof Error ? error.message : String(error),
      });
    }
    refresh();
  };
  const run = (verb: RunVerb, selection: RunSelection) =>
    attempt(async () => {
      const acted = await actOnRuns(project, verb, selection);
      sayRefused(acted);
      if (verb === "resume" && acted.done.length > 0)
        showUndo(
          `${formatPlural(acted.done.length, "run")} resumed`,
          () => void pauseAgain(acted.done),
        );
    });
  const pauseAgain = (done: readonly string[]) =>
    attempt(async () => {
      for (let first = 0; first < done.length; first += MOST_NAMED) {
        const runs = done.slice(first, first + MOST_NAMED);
        sayRefused(await actOnRuns(project, "pause", { runs: [...runs] }));
      }
    });
  return {
    /**
     * Resumes runs at once, which pausing them undoes. The other actions happen some seconds later,
     * since nothing gives back a place in the queue or an ended training.
     */
    act: (verb: RunVerb, selection: RunSelection, count: number) => {
      if (verb === "resume") void run(verb, selection);
      else
        runDelayed(
          `${formatPlural(count, "run")} will be ${DONE[verb]}`,
          () => void run(verb, selection),
        );
    },
  };
}

function sayRefused({ refused }: RunsActed): void {
  const [first] = refused;
  if (first === undefined) return;
  notifications.show({
    color: "red",
    title: `${formatPlural(refused.length, "run")} could not be changed`,
    message: first.detail,
  });
}
