import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { type QueueRequest, queueJob } from "@/api/actions";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { keys, snapshotsQuery } from "@/api/queries";
import { poolsQuery } from "@/api/queueQueries";
import type { RunDetail, Snapshot } from "@/api/types";
import { capitalize, formatCount, formatValue, nameSchedule } from "@/lib/format";
import { JOB_FIELDS, type JobForm } from "@/lib/jobForms";
import { EvaluateDialog } from "@/ui/EvaluateDialog";
import { ExportDialog } from "@/ui/ExportDialog";
import { IconChevronDown, IconFlask, IconPackageExport, IconTarget } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import { TestDialog } from "./TestDialog";

/** Queues another job on the run. */
export function NewJob({ run }: { run: RunDetail }) {
  const [asked, setAsked] = useState<"evaluate" | "export" | "test" | null>(null);
  const { reason } = usePermission("run.submit", run.project);
  const client = useQueryClient();
  const queue = useMutation({
    mutationFn: (request: QueueRequest) => queueJob(run.id, request),
    onSettled: () => client.invalidateQueries({ queryKey: keys.run(run.id) }),
    onSuccess: (made) => {
      notifications.show({ message: `Queued: ${nameSchedule(made.schedule)}` });
      setAsked(null);
    },
  });
  if (reason !== null) {
    return (
      <Permitted reason={reason}>
        <Button variant="default">New job</Button>
      </Permitted>
    );
  }
  const open = (dialog: "evaluate" | "export" | "test") => {
    queue.reset();
    setAsked(dialog);
  };
  return (
    <>
      <Menu>
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={14} />}>
            New job
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconTarget size={15} />} onClick={() => open("evaluate")}>
            Evaluate…
          </Menu.Item>
          <Menu.Item leftSection={<IconPackageExport size={15} />} onClick={() => open("export")}>
            Export…
          </Menu.Item>
          <Menu.Item leftSection={<IconFlask size={15} />} onClick={() => open("test")}>
            Test the definition…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asked === "test" && (
        <TestDialog
          run={run}
          error={queue.error}
          isPending={queue.isPending}
          onSubmit={(request) => queue.mutate(request)}
          onClose={() => setAsked(null)}
        />
      )}
      {(asked === "evaluate" || asked === "export") && (
        <Dialog
          run={run}
          kind={asked}
          error={queue.error}
          isPending={queue.isPending}
          onSubmit={(request) => queue.mutate(request)}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}

interface DialogProps {
  run: RunDetail;
  kind: "evaluate" | "export";
  error: unknown;
  isPending: boolean;
  onSubmit(request: JobForm): void;
  onClose(): void;
}

function Dialog({ run, kind, error, isPending, onSubmit, onClose }: DialogProps) {
  const { data: snapshots } = useQuery(snapshotsQuery(run.id));
  const { data: pools } = useQuery(poolsQuery);
  const Form = kind === "evaluate" ? EvaluateDialog : ExportDialog;
  const verb = kind === "evaluate" ? "Evaluate" : "Export";
  return (
    <Form
      title={`${verb} seed ${run.seed}`}
      submit={`Queue the ${kind === "evaluate" ? "evaluation" : "export"}`}
      snapshots={(snapshots ?? []).filter(isReadable).map(describeSnapshot)}
      pools={(pools ?? []).map((pool) => pool.name)}
      isPending={isPending}
      faultAt={(pointer) => capitalize(findFaultAt(error, pointer) ?? "") || undefined}
      problem={error === null ? null : findFaultBeside(error, JOB_FIELDS)}
      onSubmit={onSubmit}
      onClose={onClose}
    />
  );
}

function isReadable(snapshot: Snapshot): boolean {
  return snapshot.state === "verified" && !snapshot.superseded;
}

function describeSnapshot(snapshot: Snapshot): { value: string; label: string } {
  const score = snapshot.score === null ? "" : `, score ${formatValue(snapshot.score)}`;
  return { value: snapshot.id, label: `At ${formatCount(snapshot.env_step)} env steps${score}` };
}
