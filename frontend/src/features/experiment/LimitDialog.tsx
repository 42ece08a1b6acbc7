import { NumberInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { limitExperiment } from "@/api/actions";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { keys } from "@/api/queries";
import type { Experiment } from "@/api/types";
import { capitalize } from "@/lib/format";
import { FormDialog } from "@/ui/FormDialog";

/** Asks how many jobs of an experiment run at the same time. */
export function LimitDialog({ experiment, onClose }: { experiment: Experiment; onClose(): void }) {
  const client = useQueryClient();
  const [most, setMost] = useState<number | "">(experiment.max_running ?? "");
  const change = useMutation({
    mutationFn: () => limitExperiment(experiment, most === "" ? null : most),
    onSuccess: ({ project, id, max_running }) => {
      void client.invalidateQueries({ queryKey: keys.experiment(project, id) });
      const many = max_running ? `At most ${max_running}` : "Any number";
      notifications.show({ message: `${many} of its jobs run at the same time` });
      onClose();
    },
  });
  return (
    <FormDialog
      opened
      title="Limit running jobs"
      submit={most === "" ? "Set no limit" : "Set the limit"}
      isPending={change.isPending}
      problem={change.error && findFaultBeside(change.error, ["/max_running"])}
      onSubmit={() => change.mutate()}
      onClose={onClose}
    >
      <NumberInput
        label="Most jobs that run at the same time"
        description="Running jobs go on; the others wait"
        placeholder="No limit"
        min={1}
        allowDecimal={false}
        data-autofocus
        value={most}
        error={capitalize(findFaultAt(change.error, "/max_running") ?? "")}
        onChange={(value) => setMost(value === "" ? "" : Number(value))}
      />
    </FormDialog>
  );
}
