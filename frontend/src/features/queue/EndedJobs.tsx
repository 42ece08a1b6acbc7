import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useProject } from "@/api/access";
import { endedJobsQuery } from "@/api/queueQueries";
import type { Job } from "@/api/types";
import { formatAge, formatCount, formatMoment, nameCause, nameSchedule } from "@/lib/format";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Panel } from "@/ui/Page";
import { ShowMore } from "@/ui/ShowMore";
import { StateBadge } from "@/ui/StateBadge";
import { describeJobPlace, JobName } from "./JobName";
import type { QueueSearch } from "./search";

const COLUMNS: Column<Job>[] = [
  { id: "job", header: "Job", cell: (job) => <JobName job={job} /> },
  {
    id: "state",
    header: "State",
    width: 124,
    cell: (job) => <StateBadge state={job.state} />,
  },
  {
    id: "cause",
    header: "Cause",
    width: "26%",
    hide: "narrow",
    cell: (job) => (
      <span className="clip" title={job.failure?.message}>
        {job.cause === null ? "–" : nameCause(job.cause)}
        {job.failure && <span className="muted"> {job.failure.message}</span>}
      </span>
    ),
  },
  {
    id: "schedule",
    header: "Schedule",
    width: 128,
    hide: "medium",
    cell: (job) => nameSchedule(job.schedule),
  },
  {
    id: "attempts",
    header: "Attempts",
    width: 80,
    align: "right",
    hide: "medium",
    cell: (job) => formatCount(job.attempts),
  },
  { id: "by", header: "By", width: 90, hide: "narrow", cell: (job) => job.created_by },
  {
    id: "ended",
    header: "Ended",
    width: 96,
    align: "right",
    cell: (job) => <span title={formatMoment(job.finished_at)}>{formatAge(job.finished_at)}</span>,
  },
];

interface EndedJobsProps {
  pool: string;
  search: QueueSearch;
}

/** The jobs of a pool that have ended, of all experiments; loaded once they are asked for. */
export function EndedJobs({ pool, search }: EndedJobsProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <Panel
      title="Ended"
      flush
      aside={
        <Button
          variant="subtle"
          size="compact-xs"
          aria-expanded={isShown}
          onClick={() => setIsShown(!isShown)}
        >
          {isShown ? "Hide" : "Show ended jobs"}
        </Button>
      }
    >
      {isShown && <Ended pool={pool} search={search} />}
    </Panel>
  );
}

function Ended({ pool, search }: EndedJobsProps) {
  const navigate = useNavigate();
  const project = useProject();
  const query = useInfiniteQuery(
    endedJobsQuery({
      pool,
      project: search.show === "project" ? project : null,
      user: search.show === "mine" ? "me" : undefined,
    }),
  );
  const jobs = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return (
    <ListFrame query={query}>
      {jobs.length === 0 ? (
        <EmptyState title="No job has ended here" small>
          Jobs that succeeded, failed or were cancelled are listed here, the newest first.
        </EmptyState>
      ) : (
        <DataTable
          label="Ended jobs"
          rows={jobs}
          columns={COLUMNS}
          rowId={(job) => job.id}
          onOpen={(job) => void navigate(describeJobPlace(job))}
          footer={<ShowMore query={query} label="Show older jobs" />}
        />
      )}
    </ListFrame>
  );
}
