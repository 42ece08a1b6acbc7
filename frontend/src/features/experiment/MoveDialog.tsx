import { Select } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { moveExperiment } from "@/api/actions";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { projectKeys } from "@/api/projects";
import { keys } from "@/api/queries";
import type { Experiment, Membership } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { Message } from "@/ui/Message";
import classes from "./MoveDialog.module.css";

interface MoveDialogProps {
  experiment: Experiment;
  /** Projects to which the caller may move it. */
  targets: readonly Membership[];
  onClose(): void;
}

/** Asks to which project an experiment is moved, and lists what is moved with it. */
export function MoveDialog({ experiment, targets, onClose }: MoveDialogProps) {
  const [only] = targets;
  const [to, setTo] = useState(targets.length === 1 ? (only?.slug ?? null) : null);
  const target = targets.find((one) => one.slug === to);
  const name = target?.name ?? "the other project";
  const move = useMove(experiment, () => {
    notifications.show({ message: `Moved to ${name}` });
    onClose();
  });
  const fault = findFaultAt(move.error, "/to");
  return (
    <FormDialog
      opened
      size="lg"
      title="Move to another project"
      submit="Move the experiment"
      incomplete={target === undefined}
      isPending={move.isPending}
      problem={findFaultBeside(move.error, ["/to"])}
      onSubmit={() => to !== null && move.mutate(to)}
      onClose={onClose}
    >
      <Select
        label="Project"
        description="Of those in which you are a maintainer"
        placeholder="Choose a project"
        data-autofocus
        searchable={targets.length > 7}
        allowDeselect={false}
        nothingFoundMessage="You maintain no project of this name"
        data={targets.map(({ slug, name }) => ({ value: slug, label: name }))}
        renderOption={({ option }) => (
          <span>
            {option.label} <span className="faint mono">{option.value}</span>
          </span>
        )}
        value={to}
        error={fault && <Message text={fault} />}
        onChange={(slug) => {
          move.reset();
          setTo(slug);
        }}
      />
      <dl className={classes.effects}>
        <dt>Moves</dt>
        <dd>
          All runs with their jobs, curves, logs, evaluations, snapshots, videos and files. Their
          IDs stay, and the files count toward the storage of {name}.
        </dd>
        <dt>Stays</dt>
        <dd>
          The audit entries until now, and the computing time that its attempts used, stay with this
          project.
        </dd>
        <dt>Access</dt>
        <dd>
          Only members of {name} see it then. The old address answers scripts with 404; in a browser
          it leads members of both projects to the new page.
        </dd>
      </dl>
    </FormDialog>
  );
}

/** Moves the experiment, and opens its page in the other project. */
function useMove({ project, id }: Experiment, onDone: () => void) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (to: string) => moveExperiment({ project, id }, to),
    onSuccess: async (moved) => {
      client.setQueryData(keys.experiment(moved.project, moved.id), moved);
      // Runs are cached by their ID alone, with the project in which they were.
      client.removeQueries({ queryKey: keys.allRuns });
      await navigate({
        to: "/p/$project/experiments/$experimentId",
        params: { project: moved.project, experimentId: moved.id },
        search: {},
      });
      client.removeQueries({ queryKey: keys.experiment(project, id) });
      for (const queryKey of [keys.experiments, keys.jobs, projectKeys.all])
        void client.invalidateQueries({ queryKey });
      onDone();
    },
  });
}
