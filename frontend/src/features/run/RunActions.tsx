import { Button, Modal } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl } from "@/api/access";
import { actOnJob, type JobVerb } from "@/api/actions";
import { keys } from "@/api/queries";
import { recordExport } from "@/api/recordExport";
import type { JobState, RunDetail } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { IconBan, IconPlayerPause, IconPlayerPlay, IconRefresh } from "@/ui/icons";
import { OtherCode } from "@/ui/OtherCode";
import { Permitted } from "@/ui/Permitted";
import { RecordsMenu } from "@/ui/RecordsMenu";
import { RetryDialog } from "@/ui/RetryDialog";
import { showUndo } from "@/ui/undoNotification";
import { NewJob } from "./NewJob";
import { type Retry, useRetry } from "./useRetry";

const PAUSABLE: readonly JobState[] = ["queued", "starting", "running"];
const CANCELLABLE: readonly JobState[] = [
  "queued",
  "starting",
  "running",
  "pausing",
  "paused",
  "lost",
  "preempting",
];

interface RetryButtonProps {
  run: RunDetail;
  retry: Retry;
  reason: string | null;
}

/** Actions on a run. Pausing can be undone; cancelling asks for confirmation. */
export function RunActions({ run }: { run: RunDetail }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const retry = useRetry(run);
  const job = run.jobs.find((one) => one.id === run.job_id);
  const others = (job?.run_ids.length ?? 1) - 1;
  const refresh = () => client.invalidateQueries({ queryKey: keys.run(run.id) });
  const refused = (error: Error) =>
    notifications.show({ color: "red", title: "The request failed", message: error.message });
  const act = useMutation({
    mutationFn: (verb: JobVerb) => actOnJob(run.job_id ?? "", verb),
    onSettled: refresh,
    onError: refused,
  });
  const pause = () =>
    act.mutate("pause", {
      onSuccess: () =>
        showUndo(
          others > 0
            ? `Pausing the pack, with ${formatPlural(others, "other seed")}: snapshots are saved first`
            : "Pausing: a snapshot is saved first",
          () => retry.go("resume"),
        ),
    });
  const state = job?.state;
  const mayAct = useControl();
  const why = (action: string) => mayAct(job ?? run, `${action} this run`).reason;
  return (
    <>
      {state && PAUSABLE.includes(state) && (
        <Permitted reason={why("pause")}>
          <Button
            variant="default"
            leftSection={<IconPlayerPause size={15} />}
            loading={act.isPending}
            onClick={pause}
          >
            Pause
          </Button>
        </Permitted>
      )}
      {(state === "paused" || state === "pausing") && (
        <Permitted reason={why("resume")}>
          <Button
            leftSection={<IconPlayerPlay size={15} />}
            loading={retry.isPending}
            onClick={() => retry.go("resume")}
          >
            Resume
          </Button>
        </Permitted>
      )}
      {(run.state === "failed" || run.state === "cancelled") && (
        <RetryButton run={run} retry={retry} reason={mayAct(run, "retry this run").reason} />
      )}
      {state && CANCELLABLE.includes(state) && (
        <Permitted reason={why("cancel")}>
          <Button
            variant="default"
            leftSection={<IconBan size={15} />}
            onClick={() => setAsking(true)}
          >
            Cancel…
          </Button>
        </Permitted>
      )}
      <NewJob run={run} />
      <RecordsMenu buildUrl={recordExport(null, { run: run.id })} />
      <OtherCode refusal={retry.refusal} onClose={retry.leave} onAllow={retry.allow} />
      <Modal opened={asking} onClose={() => setAsking(false)} title={`Cancel seed ${run.seed}?`}>
        <p>
          The run saves a snapshot and cannot be resumed afterwards. Its curves, evaluations and
          snapshots stay.
        </p>
        {others > 0 && (
          <p>
            It trains in a pack, as one job with {formatPlural(others, "other seed")}:{" "}
            {others > 1 ? "they are cancelled with it." : "it is cancelled, too."}
          </p>
        )}
        <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
          <Button variant="default" onClick={() => setAsking(false)} data-autofocus>
            Keep training
          </Button>
          <Button
            color="red"
            onClick={() => {
              setAsking(false);
              act.mutate("cancel");
            }}
          >
            Cancel {others > 0 ? formatPlural(others + 1, "run") : "the run"}
          </Button>
        </div>
      </Modal>
    </>
  );
}

/** Retries a run that failed or was cancelled. */
function RetryButton({ run, retry, reason }: RetryButtonProps) {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <>
      <Permitted reason={reason}>
        <Button
          leftSection={<IconRefresh size={15} />}
          loading={retry.isPending}
          onClick={() => setIsAsking(true)}
        >
          Retry…
        </Button>
      </Permitted>
      {isAsking && (
        <RetryDialog
          title={`Retry seed ${run.seed}?`}
          submit="Retry the run"
          isPending={false}
          onSubmit={(form) => {
            setIsAsking(false);
            retry.go(form);
          }}
          onClose={() => setIsAsking(false)}
        />
      )}
    </>
  );
}
