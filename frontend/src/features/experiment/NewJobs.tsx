import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { usePermission } from "@/api/access";
import { queueJob } from "@/api/actions";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { keys } from "@/api/queries";
import { poolsQuery } from "@/api/queueQueries";
import type { ExperimentDetail, Run } from "@/api/types";
import { capitalize, formatPlural } from "@/lib/format";
import { JOB_FIELDS, type JobForm } from "@/lib/jobForms";
import { EvaluateDialog } from "@/ui/EvaluateDialog";
import { ExportDialog } from "@/ui/ExportDialog";
import { IconChevronDown, IconCopy, IconPackageExport, IconPlus, IconTarget } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import { MoreSeedsDialog } from "./MoreSeedsDialog";

interface NewJobsProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
}

type Asked = "seeds" | "evaluate" | "export";

/** Leads to the form with this experiment, and queues further jobs of it. */
export function NewJobs({ experiment, runs }: NewJobsProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const { reason } = usePermission("run.submit", experiment.project);
  const { project, id } = experiment;
  const close = () => setAsked(null);
  if (reason !== null) {
    return (
      <Permitted reason={reason}>
        <Button variant="default">New job</Button>
      </Permitted>
    );
  }
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconCopy size={15} />}
        renderRoot={(props) => (
          <Link to="/p/$project/new" params={{ project }} search={{ from: id }} {...props} />
        )}
      >
        Clone with changes
      </Button>
      <Menu>
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={14} />}>
            New job
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconPlus size={15} />} onClick={() => setAsked("seeds")}>
            Train more seeds…
          </Menu.Item>
          <Menu.Item leftSection={<IconTarget size={15} />} onClick={() => setAsked("evaluate")}>
            Evaluate {all(runs)}…
          </Menu.Item>
          <Menu.Item
            leftSection={<IconPackageExport size={15} />}
            onClick={() => setAsked("export")}
          >
            Export {all(runs)}…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asked === "seeds" && <MoreSeedsDialog experiment={experiment} runs={runs} onClose={close} />}
      {(asked === "evaluate" || asked === "export") && (
        <JobsDialog experiment={experiment} runs={runs} kind={asked} onClose={close} />
      )}
    </>
  );
}

function all(runs: readonly Run[]): string {
  return runs.length === 1 ? "its run" : `all ${runs.length} runs`;
}

/** Queues an evaluation or export on each run. */
function JobsDialog({
  experiment,
  runs,
  kind,
  onClose,
}: NewJobsProps & { kind: "evaluate" | "export"; onClose(): void }) {
  const client = useQueryClient();
  const { data: pools } = useQuery(poolsQuery);
  const queue = useMutation({
    mutationFn: (request: JobForm) => queueOnAll(runs, request),
    onSettled: () =>
      client.invalidateQueries({ queryKey: keys.experiment(experiment.project, experiment.id) }),
    onSuccess: ({ queued, refusal }) => {
      const title = `Queued on ${queued} of ${formatPlural(runs.length, "run")}`;
      notifications.show(
        refusal === null ? { message: title } : { color: "red", title, message: refusal },
      );
      onClose();
    },
  });
  const Form = kind === "evaluate" ? EvaluateDialog : ExportDialog;
  const verb = kind === "evaluate" ? "Evaluate" : "Export";
  return (
    <Form
      title={`${verb} ${all(runs)}`}
      submit={`Queue ${formatPlural(runs.length, "job")}`}
      snapshots={[]}
      pools={(pools ?? []).map((pool) => pool.name)}
      isPending={queue.isPending}
      faultAt={(pointer) => capitalize(findFaultAt(queue.error, pointer) ?? "") || undefined}
      problem={queue.error && findFaultBeside(queue.error, JOB_FIELDS)}
      onSubmit={(request) => queue.mutate(request)}
      onClose={onClose}
    />
  );
}

interface Outcome {
  queued: number;
  /** The first refusal, with the seed of its run. */
  refusal: string | null;
}

/** Queues a job on every run, even if one is refused; throws if all are. */
async function queueOnAll(runs: readonly Run[], request: JobForm): Promise<Outcome> {
  const results = await Promise.allSettled(runs.map((run) => queueJob(run.id, request)));
  const queued = results.filter((one) => one.status === "fulfilled").length;
  const place = results.findIndex((one) => one.status === "rejected");
  const first = results[place];
  if (first?.status !== "rejected") return { queued, refusal: null };
  if (queued === 0) throw first.reason;
  const message = first.reason instanceof Error ? first.reason.message : String(first.reason);
  return { queued, refusal: `Seed ${runs[place]?.seed}: ${message}` };
}
