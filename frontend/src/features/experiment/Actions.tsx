import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl } from "@/api/access";
import { actOnJob, type JobVerb, retryRun } from "@/api/actions";
import { isCodeChange } from "@/api/client";
import { keys } from "@/api/queries";
import { recordExport } from "@/api/recordExport";
import type { Experiment, Run } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { IconPlayerPause, IconPlayerPlay, IconRefresh } from "@/ui/icons";
import { OtherCode } from "@/ui/OtherCode";
import { Permitted } from "@/ui/Permitted";
import { RecordsMenu } from "@/ui/RecordsMenu";
import { RetryDialog, type RetryForm } from "@/ui/RetryDialog";
import { showUndo } from "@/ui/undoNotification";
import { ExperimentMenu } from "./ExperimentMenu";

const PAUSABLE = ["running", "queued"];
const CANCELLABLE = ["running", "queued", "paused"];

interface ActionsProps {
  experiment: Experiment;
  runs: readonly Run[];
}

/**
 * Actions on all runs of an experiment. Pausing can be undone; cancelling asks for confirmation.
 */
export function Actions({ experiment, runs }: ActionsProps) {
  const client = useQueryClient();
  const [refusal, setRefusal] = useState<{ form: RetryForm; message: string } | null>(null);
  const [isRetrying, setRetrying] = useState(false);
  const mayAct = useControl();
  const inStates = (states: readonly string[], action: string) =>
    controllable(
      runs.filter((run) => states.includes(run.state) && run.job_id !== null),
      (run) => mayAct(run, action).reason,
    );
  const refresh = () =>
    client.invalidateQueries({ queryKey: keys.experiment(experiment.project, experiment.id) });
  const act = useMutation({
    mutationFn: ({ verb, of }: { verb: JobVerb; of: readonly Run[] }) => {
      // All runs of a pack belong to one job, which gets the request once.
      const jobs = new Set(of.flatMap((run) => run.job_id ?? []));
      return sendAll([...jobs], (job) => actOnJob(job, verb));
    },
    onSettled: refresh,
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "Not every request succeeded",
        message: error.message,
      }),
  });
  const failed = controllable(
    runs.filter((run) => run.state === "failed"),
    (run) => mayAct(run, "retry these runs").reason,
  );
  const again = useMutation({
    mutationFn: ({ origin, ...rest }: RetryForm & { otherCode: boolean }) =>
      sendAll(failed.runs, (run) => retryRun(run.id, origin, rest)),
    onSettled: refresh,
    onError: (error, { origin, reason }) =>
      isCodeChange(error)
        ? setRefusal({ form: { origin, reason }, message: error.message })
        : notifications.show({
            color: "red",
            title: "Not every request succeeded",
            message: error.message,
          }),
  });
  const pausable = inStates(PAUSABLE, "pause these runs");
  const resumable = inStates(["paused"], "resume these runs");
  const cancellable = inStates(CANCELLABLE, "cancel these runs");
  const pauseAll = () =>
    act.mutate(
      { verb: "pause", of: pausable.runs },
      {
        onSuccess: () =>
          showUndo(`Pausing ${formatPlural(pausable.runs.length, "run")}`, () =>
            act.mutate({ verb: "resume", of: pausable.runs }),
          ),
      },
    );
  return (
    <>
      {pausable.found > 0 && (
        <Permitted reason={pausable.reason}>
          <Button
            variant="default"
            leftSection={<IconPlayerPause size={15} />}
            loading={act.isPending}
            onClick={pauseAll}
          >
            Pause {amount(pausable)}
          </Button>
        </Permitted>
      )}
      {resumable.found > 0 && (
        <Permitted reason={resumable.reason}>
          <Button
            variant="default"
            leftSection={<IconPlayerPlay size={15} />}
            loading={act.isPending}
            onClick={() => act.mutate({ verb: "resume", of: resumable.runs })}
          >
            Resume {resumable.runs.length || resumable.found}
          </Button>
        </Permitted>
      )}
      {failed.found > 0 && (
        <Permitted reason={failed.reason}>
          <Button
            variant="default"
            leftSection={<IconRefresh size={15} />}
            loading={again.isPending}
            onClick={() => setRetrying(true)}
          >
            Retry {failed.runs.length || failed.found} failed…
          </Button>
        </Permitted>
      )}
      {isRetrying && (
        <RetryDialog
          several
          title={`Retry ${formatPlural(failed.runs.length, "failed run")}?`}
          submit={`Retry ${formatPlural(failed.runs.length, "run")}`}
          isPending={again.isPending}
          onSubmit={(form) => {
            setRetrying(false);
            again.mutate({ ...form, otherCode: false });
          }}
          onClose={() => setRetrying(false)}
        />
      )}
      <OtherCode
        refusal={refusal?.message ?? null}
        onClose={() => setRefusal(null)}
        onAllow={() => refusal && again.mutate({ ...refusal.form, otherCode: true })}
      />
      <RecordsMenu buildUrl={recordExport(experiment.project, { experiment: experiment.id })} />
      <ExperimentMenu
        experiment={experiment}
        runs={runs}
        cancellable={cancellable}
        onCancel={() => act.mutate({ verb: "cancel", of: cancellable.runs })}
      />
    </>
  );
}

export interface Controllable {
  /** Number of runs in the state, those of others included. */
  found: number;
  /** The runs that the user may act on. */
  runs: readonly Run[];
  /** Why the user may act on none; `null` if on some. */
  reason: string | null;
}

function controllable(found: readonly Run[], refusalOf: (run: Run) => string | null): Controllable {
  const runs = found.filter((run) => refusalOf(run) === null);
  const [first] = found;
  const reason = runs.length > 0 || first === undefined ? null : refusalOf(first);
  return { found: found.length, runs, reason };
}

/** `all`, or the number of runs that the user may act on. */
function amount({ found, runs }: Controllable): string {
  if (runs.length > 0 && runs.length < found) return `${runs.length} of ${found}`;
  return found > 1 ? "all" : "";
}

/** Sends all requests, even if one is refused, and then throws the first error. */
async function sendAll<Item>(
  items: readonly Item[],
  ask: (item: Item) => Promise<unknown>,
): Promise<void> {
  const results = await Promise.allSettled(items.map(ask));
  const refused = results.find((one) => one.status === "rejected");
  if (refused) throw refused.reason;
}
