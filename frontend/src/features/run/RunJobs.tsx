import { ActionIcon, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useControl } from "@/api/access";
import { actOnJob } from "@/api/actions";
import { keys } from "@/api/queries";
import type { Job, JobState, RunDetail } from "@/api/types";
import { formatAge, formatCount, formatMoment, nameCause, nameSchedule } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { IconBan } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { StateBadge } from "@/ui/StateBadge";

const OPEN: readonly JobState[] = [
  "queued",
  "starting",
  "running",
  "pausing",
  "paused",
  "preempting",
  "lost",
];

const COLUMNS: Column<Job>[] = [
  {
    id: "schedule",
    header: "Schedule",
    width: 220,
    cell: (job) => <b>{nameSchedule(job.schedule)}</b>,
  },
  { id: "state", header: "State", width: 124, cell: (job) => <StateBadge state={job.state} /> },
  {
    id: "why",
    header: "Why",
    hide: "narrow",
    cell: (job) => (
      <span className="muted" title={describeRefusal(job)}>
        {describeRefusal(job)}
      </span>
    ),
  },
  {
    id: "attempts",
    header: "Attempts",
    width: 84,
    align: "right",
    hide: "medium",
    cell: (job) => formatCount(job.attempts),
  },
  {
    id: "at",
    header: "Queued",
    width: 100,
    align: "right",
    cell: (job) => <span title={formatMoment(job.created_at)}>{formatAge(job.created_at)}</span>,
  },
];

/** Every job of the run, the newest first; jobs other than the training can be cancelled here. */
export function RunJobs({ run }: { run: RunDetail }) {
  if (run.jobs.length < 2) return null;
  const stop: Column<Job> = {
    id: "stop",
    header: "",
    width: 48,
    align: "right",
    cell: (job) =>
      job.id !== run.job_id && OPEN.includes(job.state) && <StopButton run={run} job={job} />,
  };
  return (
    <Panel title="Jobs" flush>
      <DataTable
        label="Jobs of this run"
        rows={[...run.jobs].reverse()}
        columns={[...COLUMNS, stop]}
        rowId={(job) => job.id}
      />
    </Panel>
  );
}

function StopButton({ run, job }: { run: RunDetail; job: Job }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () => actOnJob(job.id, "cancel"),
    onSettled: () => client.invalidateQueries({ queryKey: keys.run(run.id) }),
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error.message,
      }),
  });
  const { reason } = useControl()(job, "cancel this job");
  const label = `Cancel ${nameSchedule(job.schedule)}`;
  const button = (
    <ActionIcon size={22} aria-label={label} loading={act.isPending} onClick={() => act.mutate()}>
      <IconBan size={14} />
    </ActionIcon>
  );
  return reason === null ? (
    <Tooltip label={label}>{button}</Tooltip>
  ) : (
    <Permitted reason={reason}>{button}</Permitted>
  );
}

function describeRefusal(job: Job): string {
  return job.waiting ?? job.failure?.message ?? (job.cause === null ? "" : nameCause(job.cause));
}
