import { ActionIcon, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useControl } from "@/api/access";
import { actOnJob, type JobVerb } from "@/api/actions";
import { keys } from "@/api/queries";
import type { Job } from "@/api/types";
import { formatAge, formatCount, formatMoment, formatPlural, nameSchedule } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import { IconPlayerPause, IconPlayerPlay } from "@/ui/icons";
import { Permitted } from "@/ui/Permitted";
import { StateBadge } from "@/ui/StateBadge";
import { showUndo } from "@/ui/undoNotification";
import { JobName } from "./JobName";

/** The columns of the jobs that hold a slot, or of those that are paused. */
export function jobColumns(kind: "active" | "paused"): Column<Job>[] {
  const state: Column<Job> = {
    id: "state",
    header: "State",
    width: 124,
    cell: (job) => <StateBadge state={job.state} />,
  };
  const attempts: Column<Job> = {
    id: "attempts",
    header: "Attempt",
    width: 80,
    align: "right",
    hide: "narrow",
    cell: (job) => formatCount(job.attempts),
  };
  const since: Column<Job> = {
    id: "since",
    header: kind === "active" ? "Started" : "Queued",
    width: 96,
    align: "right",
    cell: (job) => {
      const at = (kind === "active" ? job.started_at : null) ?? job.created_at;
      return <span title={formatMoment(at)}>{formatAge(at)}</span>;
    },
  };
  const action: Column<Job> = {
    id: "action",
    header: "",
    width: 48,
    align: "right",
    cell: (job) => <JobButton job={job} />,
  };
  return [
    { id: "job", header: "Job", cell: (job) => <JobName job={job} /> },
    state,
    {
      id: "schedule",
      header: "Schedule",
      width: 128,
      hide: "narrow",
      cell: (job) => <span title={nameSchedule(job.schedule)}>{nameSchedule(job.schedule)}</span>,
    },
    { id: "pool", header: "Pool", width: 84, hide: "medium", cell: (job) => job.pool },
    {
      id: "class",
      header: "Class",
      width: 92,
      hide: "medium",
      cell: (job) => job.priority_class,
    },
    {
      id: "priority",
      header: "Priority",
      width: 70,
      align: "right",
      hide: "medium",
      cell: (job) => job.priority,
    },
    { id: "needs", header: "Needs", width: 76, hide: "medium", cell: needs },
    attempts,
    { id: "by", header: "By", width: 76, hide: "medium", cell: (job) => job.created_by },
    since,
    action,
  ];
}

function needs(job: Job): string {
  const { gpus, cpu_threads: threads } = job.resources;
  if (gpus) return formatPlural(gpus, "GPU");
  return threads === undefined ? "–" : formatPlural(threads, "thread");
}

function JobButton({ job }: { job: Job }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: (verb: JobVerb) => actOnJob(job.id, verb),
    onSettled: () => client.invalidateQueries({ queryKey: keys.jobs }),
    onError: (error) =>
      notifications.show({
        color: "red",
        title: "The request failed",
        message: error.message,
      }),
  });
  const mayAct = useControl();
  const paused = job.state === "paused" || job.state === "pausing";
  if (!paused && !["queued", "starting", "running"].includes(job.state)) return null;
  const label = paused ? "Resume" : "Pause";
  const run = () => {
    if (paused) act.mutate("resume");
    else
      act.mutate("pause", {
        onSuccess: () => showUndo("Pausing the job", () => act.mutate("resume")),
      });
  };
  const { reason } = mayAct(job, `${label.toLowerCase()} this job`);
  const button = (
    <ActionIcon size={22} aria-label={`${label} this job`} loading={act.isPending} onClick={run}>
      {paused ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
    </ActionIcon>
  );
  return reason === null ? (
    <Tooltip label={label}>{button}</Tooltip>
  ) : (
    <Permitted reason={reason}>{button}</Permitted>
  );
}
