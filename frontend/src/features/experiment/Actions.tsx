import { Button, Menu, Modal } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl } from "@/api/access";
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
import { Permitted } from "@/ui/Permitted";
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
  const failed = controllable(
    runs.filter((run) => run.state === "failed"),
    (run) => mayAct(run, "retry these runs").reason,
  );
  const again = useMutation({
    mutationFn: (otherCode: boolean) =>
      each(failed.runs, (run) => retryRun(run.id, "newest", otherCode)),
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
  const pausable = inStates(PAUSABLE, "pause these runs");
  const resumable = inStates(["paused"], "resume these runs");
  const cancellable = inStates(CANCELLABLE, "cancel these runs");
  const pauseAll = () =>
    act.mutate(
      { verb: "pause", of: pausable.runs },
      {
        onSuccess: () =>
          undoable(`Pausing ${plural(pausable.runs.length, "run")}`, () =>
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
            title={
              failed.reason === null
                ? "Each run resumes from its newest snapshot, or starts again without one"
                : undefined
            }
            onClick={() => again.mutate(false)}
          >
            Retry {failed.runs.length || failed.found} failed
          </Button>
        </Permitted>
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
          <Permitted reason={cancellable.reason}>
            <Menu.Item
              leftSection={<IconBan size={15} />}
              disabled={cancellable.found === 0}
              onClick={() => setAsking(true)}
            >
              Cancel {plural(cancellable.runs.length || cancellable.found, "run")}…
            </Menu.Item>
          </Permitted>
          {experiment.archived_at === null ? (
            <Permitted reason={mayAct(experiment, "archive this experiment").reason}>
              <Menu.Item leftSection={<IconArchive size={15} />} onClick={() => put.mutate(true)}>
                Archive
              </Menu.Item>
            </Permitted>
          ) : (
            <Permitted reason={mayAct(experiment, "unarchive this experiment").reason}>
              <Menu.Item
                leftSection={<IconArchiveOff size={15} />}
                onClick={() => put.mutate(false)}
              >
                Unarchive
              </Menu.Item>
            </Permitted>
          )}
        </Menu.Dropdown>
      </Menu>
      <Modal
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Cancel ${plural(cancellable.runs.length, "run")}?`}
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
              act.mutate({ verb: "cancel", of: cancellable.runs });
            }}
          >
            Cancel {plural(cancellable.runs.length, "run")}
          </Button>
        </div>
      </Modal>
    </>
  );
}

interface Controllable {
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

/** "all", or how many of the runs the user may act on. */
function amount({ found, runs }: Controllable): string {
  if (runs.length > 0 && runs.length < found) return `${runs.length} of ${found}`;
  return found > 1 ? "all" : "";
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
