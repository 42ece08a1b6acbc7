import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useControl, useMoveTargets } from "@/api/access";
import { archive, unarchive } from "@/api/actions";
import { keys } from "@/api/queries";
import type { Experiment, Run } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";
import {
  IconArchive,
  IconArchiveOff,
  IconBan,
  IconDots,
  IconFolderSymlink,
  IconListNumbers,
} from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import { showUndo } from "@/ui/undoNotification";
import type { Controllable } from "./Actions";
import { LimitDialog } from "./LimitDialog";
import { MoveDialog } from "./MoveDialog";

const UNFINISHED: readonly Run["state"][] = ["queued", "running", "paused"];

interface ExperimentMenuProps {
  experiment: Experiment;
  runs: readonly Run[];
  cancellable: Controllable;
  onCancel(): void;
}

/** The rarer actions on an experiment: cancel, limit, archive, move. */
export function ExperimentMenu({ experiment, runs, cancellable, onCancel }: ExperimentMenuProps) {
  const [asked, setAsked] = useState<"cancel" | "limit" | "move" | null>(null);
  const mayAct = useControl();
  const put = useArchive(experiment);
  const move = useMoveTargets(experiment.project);
  const busy = runs.filter((run) => UNFINISHED.includes(run.state)).length;
  const unfinished =
    busy === 0 ? null : `${formatPlural(busy, "run")} of it must end first, or be cancelled.`;
  const isArchived = experiment.archived_at !== null;
  const verb = isArchived ? "unarchive" : "archive";
  const close = () => setAsked(null);
  return (
    <>
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
              onClick={() => setAsked("cancel")}
            >
              {cancellable.found === 0
                ? "Cancel runs…"
                : `Cancel ${formatPlural(cancellable.runs.length || cancellable.found, "run")}…`}
            </Menu.Item>
          </Permitted>
          <Permitted reason={mayAct(experiment, "limit the jobs of this experiment").reason}>
            <Menu.Item
              leftSection={<IconListNumbers size={15} />}
              onClick={() => setAsked("limit")}
            >
              Limit running jobs…
            </Menu.Item>
          </Permitted>
          <Permitted reason={mayAct(experiment, `${verb} this experiment`).reason}>
            <Menu.Item
              leftSection={isArchived ? <IconArchiveOff size={15} /> : <IconArchive size={15} />}
              onClick={() => put.mutate(!isArchived)}
            >
              {isArchived ? "Unarchive" : "Archive"}
            </Menu.Item>
          </Permitted>
          <Permitted reason={move.right.reason ?? unfinished}>
            <Menu.Item
              leftSection={<IconFolderSymlink size={15} />}
              onClick={() => setAsked("move")}
            >
              Move to another project…
            </Menu.Item>
          </Permitted>
        </Menu.Dropdown>
      </Menu>
      <FormDialog
        opened={asked === "cancel"}
        title={`Cancel ${formatPlural(cancellable.runs.length, "run")}?`}
        submit={`Cancel ${formatPlural(cancellable.runs.length, "run")}`}
        leave="Keep training"
        destructive
        isPending={false}
        onSubmit={() => {
          close();
          onCancel();
        }}
        onClose={close}
      >
        <p>
          Each run saves a snapshot and cannot be resumed afterwards. Its curves, evaluations and
          snapshots stay.
        </p>
      </FormDialog>
      {asked === "limit" && <LimitDialog experiment={experiment} onClose={close} />}
      {asked === "move" && (
        <MoveDialog experiment={experiment} targets={move.targets} onClose={close} />
      )}
    </>
  );
}

/** Archives the experiment for `true`, or makes it active again; both can be undone. */
function useArchive(experiment: Experiment) {
  const client = useQueryClient();
  const put = useMutation({
    mutationFn: (away: boolean) => (away ? archive(experiment) : unarchive(experiment)),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.experiment(experiment.project, experiment.id) }),
        client.invalidateQueries({ queryKey: keys.experiments }),
      ]),
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error.message,
      }),
    onSuccess: (_, away) =>
      away
        ? showUndo("Archived: the list shows it only with archived experiments included", () =>
            put.mutate(false),
          )
        : showUndo("Unarchived: the list shows it again", () => put.mutate(true)),
  });
  return put;
}
