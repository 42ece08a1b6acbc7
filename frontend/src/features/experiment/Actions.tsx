import { Button, Menu, Modal } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actOnJob, archive, type JobVerb, retryRun, unarchive } from "@/api/actions";
import { isCodeChange } from "@/api/client";
import { keys } from "@/api/queries";
import type { Experiment, Run } from "@/api/types";
import { plural } from "@/lib/format";
import {
  IconArchive,
  IconArchiveOff,
  IconBan,
  IconDots,
  IconPlayerPause,
  IconPlayerPlay,
  IconRefresh,
} from "@/ui/icons";
import { OtherCode } from "@/ui/OtherCode";
import { undoable } from "@/ui/undoNotification";

const PAUSABLE = ["running", "queued"];
const CANCELLABLE = ["running", "queued", "paused"];

/**
 * Actions on all runs of an experiment. Pausing can be undone; cancelling asks for confirmation.
 */
export function Actions({ experiment, runs }: { experiment: Experiment; runs: readonly Run[] }) {
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const inStates = (states: readonly string[]) =>
    runs.filter((run) => states.includes(run.state) && run.job_id !== null);
  const refresh = () =>
    client.invalidateQueries({ queryKey: keys.experiment(experiment.project, experiment.id) });
  const act = useMutation({
    mutationFn: ({ verb, of }: { verb: JobVerb; of: readonly Run[] }) => {
      // All runs of a pack belong to one job, which gets the request once.
      const jobs = new Set(of.flatMap((run) => run.job_id ?? []));
      return each([...jobs], (job) => actOnJob(job, verb));
    },
    onSettled: refresh,
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "Not every request succeeded",
        message: error.message,
      }),
  });
  const put = useMutation({
    mutationFn: (away: boolean) => (away ? archive(experiment) : unarchive(experiment)),
    onSettled: () =>
      Promise.all([refresh(), client.invalidateQueries({ queryKey: keys.experiments })]),
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error.message,
      }),
    onSuccess: (_, away) =>
      away
        ? undoable("Archived: the list shows it only with archived experiments included", () =>
            put.mutate(false),
          )
        : undoable("Unarchived: the list shows it again", () => put.mutate(true)),
  });
  const failed = runs.filter((run) => run.state === "failed");
  const again = useMutation({
    mutationFn: (otherCode: boolean) =>
      each(failed, (run) => retryRun(run.id, "newest", otherCode)),
    onSettled: refresh,
    onError: (error) =>
      isCodeChange(error)
        ? setRefusal(error.message)
        : notifications.show({
            color: "red",
            title: "Not every request succeeded",
            message: error.message,
          }),
  });
  const pausable = inStates(PAUSABLE);
  const resumable = inStates(["paused"]);
  const cancellable = inStates(CANCELLABLE);
  const pauseAll = () =>
    act.mutate(
      { verb: "pause", of: pausable },
      {
        onSuccess: () =>
          undoable(`Pausing ${plural(pausable.length, "run")}`, () =>
            act.mutate({ verb: "resume", of: pausable }),
          ),
      },
    );
  return (
    <>
      {pausable.length > 0 && (
        <Button
          variant="default"
          leftSection={<IconPlayerPause size={15} />}
          loading={act.isPending}
          onClick={pauseAll}
        >
          Pause {pausable.length > 1 ? "all" : ""}
        </Button>
      )}
      {resumable.length > 0 && (
        <Button
          variant="default"
          leftSection={<IconPlayerPlay size={15} />}
          loading={act.isPending}
          onClick={() => act.mutate({ verb: "resume", of: resumable })}
        >
          Resume {resumable.length}
        </Button>
      )}
      {failed.length > 0 && (
        <Button
          variant="default"
          leftSection={<IconRefresh size={15} />}
          loading={again.isPending}
          title="Each run resumes from its newest snapshot, or starts again without one"
          onClick={() => again.mutate(false)}
        >
          Retry {failed.length} failed
        </Button>
      )}
      <OtherCode
        refusal={refusal}
        onClose={() => setRefusal(null)}
        onAllow={() => again.mutate(true)}
      />
      <Menu>
        <Menu.Target>
          <Button variant="default" px={8} aria-label="More actions">
            <IconDots size={16} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconBan size={15} />}
            disabled={cancellable.length === 0}
            onClick={() => setAsking(true)}
          >
            Cancel {plural(cancellable.length, "run")}…
          </Menu.Item>
          {experiment.archived_at === null ? (
            <Menu.Item leftSection={<IconArchive size={15} />} onClick={() => put.mutate(true)}>
              Archive
            </Menu.Item>
          ) : (
            <Menu.Item leftSection={<IconArchiveOff size={15} />} onClick={() => put.mutate(false)}>
              Unarchive
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <Modal
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Cancel ${plural(cancellable.length, "run")}?`}
      >
        <p>
          Each run saves a snapshot and cannot be resumed afterwards. Its curves, evaluations and
          snapshots stay.
        </p>
        <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
          <Button variant="default" onClick={() => setAsking(false)}>
            Keep training
          </Button>
          <Button
            color="red"
            onClick={() => {
              setAsking(false);
              act.mutate({ verb: "cancel", of: cancellable });
            }}
          >
            Cancel {plural(cancellable.length, "run")}
          </Button>
        </div>
      </Modal>
    </>
  );
}

/** Sends all requests, also after one was refused, then throws the first error. */
async function each<Item>(
  items: readonly Item[],
  ask: (item: Item) => Promise<unknown>,
): Promise<void> {
  const results = await Promise.allSettled(items.map(ask));
  const refused = results.find((one) => one.status === "rejected");
  if (refused) throw refused.reason;
}
