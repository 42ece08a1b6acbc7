import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useProject } from "@/api/access";
import type { ApiError } from "@/api/client";
import { jobsQuery, type OpenJobs, poolsQuery } from "@/api/queueQueries";
import type { Job, Pool } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { ExplanationDialog } from "./ExplanationDialog";
import { describeJobPlace } from "./JobName";
import { jobColumns } from "./jobColumns";
import { PausedPools } from "./PausedPools";
import { PoolStrip } from "./PoolStrip";
import { HEARTBEAT_MS, useLiveQueue } from "./useLiveQueue";

const WAITING = new Set(["queued", "lost"]);
const PAUSED = new Set(["paused", "pausing"]);

export function QueuePage() {
  const query = useQuery({ ...jobsQuery(useProject()), refetchInterval: HEARTBEAT_MS });
  const pools = useQuery({ ...poolsQuery, refetchInterval: HEARTBEAT_MS });
  useLiveQueue("queue");
  const problem = findQueryError(query);
  const jobs = useMemo(() => query.data?.jobs ?? [], [query.data]);
  const waiting = useMemo(() => jobs.filter((job) => WAITING.has(job.state)).sort(byPlace), [jobs]);
  const paused = useMemo(() => jobs.filter((job) => PAUSED.has(job.state)), [jobs]);
  const active = useMemo(
    () => jobs.filter((job) => !WAITING.has(job.state) && !PAUSED.has(job.state)),
    [jobs],
  );
  return (
    <Page title="Queue" facts={<PoolStrip pools={pools.data ?? []} />}>
      {problem !== null && query.data === undefined ? (
        <Panel>
          <Failure error={problem as ApiError} retry={() => void query.refetch()} />
        </Panel>
      ) : query.isPending ? (
        <Skeleton height={280} radius={10} />
      ) : (
        <>
          <PausedPools pools={listPoolsWithWaitingJobs(pools.data ?? [], waiting)} />
          <Panel
            title="Waiting"
            flush
            aside={waiting.length > 0 && <Count jobs={waiting} cut={query.data?.cut} />}
          >
            {waiting.length === 0 ? (
              <EmptyState
                title={active.length > 0 ? "No job is waiting" : "The queue is empty"}
                command="palestra submit examples/cartpole-dqn.yaml --seeds 0-9"
              >
                {active.length > 0
                  ? "Every submitted job has a slot. Jobs beyond the number of slots wait here."
                  : "Submitted jobs wait here, each with its position and the reason why it waits."}
              </EmptyState>
            ) : (
              <Jobs label="Waiting jobs" rows={waiting} kind="waiting" />
            )}
          </Panel>
          {active.length > 0 && (
            <Panel title="Active" flush aside={<Count jobs={active} cut={query.data?.cut} />}>
              <Jobs label="Active jobs" rows={active} kind="active" />
            </Panel>
          )}
          {paused.length > 0 && (
            <Panel title="Paused" flush aside={<Count jobs={paused} cut={query.data?.cut} />}>
              <Jobs label="Paused jobs" rows={paused} kind="paused" />
            </Panel>
          )}
        </>
      )}
    </Page>
  );
}

/** The pools in which a job waits. */
function listPoolsWithWaitingJobs(pools: readonly Pool[], waiting: readonly Job[]): Pool[] {
  return pools.filter(({ name }) => waiting.some(({ pool }) => pool === name));
}

/** The number of jobs; "500+" where only the first 500 were read. */
function Count({ jobs, cut }: { jobs: readonly Job[]; cut: OpenJobs["cut"] | undefined }) {
  const more = jobs.some((job) => cut?.has(job.state));
  return (
    <span className="faint">
      {more ? `${formatCount(jobs.length)}+ jobs` : formatPlural(jobs.length, "job")}
    </span>
  );
}

function Jobs({
  label,
  rows,
  kind,
}: {
  label: string;
  rows: readonly Job[];
  kind: "waiting" | "active" | "paused";
}) {
  const navigate = useNavigate();
  const [explained, setExplained] = useState<Job | null>(null);
  const columns = useMemo(() => jobColumns(kind, setExplained), [kind]);
  const open = (job: Job) => void navigate(describeJobPlace(job));
  return (
    <>
      <DataTable
        label={label}
        rows={rows}
        columns={columns}
        rowId={(job) => job.id}
        onOpen={open}
      />
      <ExplanationDialog jobId={explained?.id ?? null} onClose={() => setExplained(null)} />
    </>
  );
}

function byPlace(a: Job, b: Job): number {
  return (
    a.pool.localeCompare(b.pool) ||
    (a.position ?? 1e9) - (b.position ?? 1e9) ||
    a.created_at.localeCompare(b.created_at)
  );
}
