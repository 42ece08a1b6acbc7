import { SegmentedControl, Select, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useProject } from "@/api/access";
import type { ApiError } from "@/api/client";
import { sessionQuery } from "@/api/queries";
import { activeJobsQuery, poolsQuery } from "@/api/queueQueries";
import type { Job, Pool } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { SILENCE_MS, useLiveQueue } from "@/live/useLiveQueue";
import { DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { EndedJobs } from "./EndedJobs";
import { describeJobPlace } from "./JobName";
import { jobColumns } from "./jobColumns";
import { PausedPools } from "./PausedPools";
import { PoolNumbers } from "./PoolStrip";
import { CLASSES, type QueueSearch, readQueueSearch } from "./search";
import classes from "./Waiting.module.css";
import { WaitingPanel } from "./WaitingPanel";

const PAUSED = new Set(["paused", "pausing"]);
const ANY = "any";

/** The queue of a pool: its waiting jobs in their order, then those that run and are paused. */
export function QueuePage() {
  const project = useProject();
  const pools = useQuery({ ...poolsQuery, refetchInterval: SILENCE_MS });
  const search = readQueueSearch(useSearch({ strict: false }));
  useLiveQueue("queue");
  const problem = findQueryError(pools);
  const usable = pools.data ?? [];
  const pool = choosePool(usable, search.pool, project);
  if (pool === undefined)
    return (
      <Page title="Queue">
        {problem !== null ? (
          <Panel>
            <Failure error={problem as ApiError} retry={() => void pools.refetch()} />
          </Panel>
        ) : pools.isPending ? (
          <Skeleton height={280} radius={10} />
        ) : (
          <Panel>
            <EmptyState title="No pool admits your projects">
              Jobs wait in the queue of a pool of workers. Ask an administrator of the server to
              admit your project to one.
            </EmptyState>
          </Panel>
        )}
      </Page>
    );
  return (
    <Page
      title="Queue"
      facts={
        <>
          <b>{pool.name}</b>
          <PoolNumbers pool={pool} />
        </>
      }
      actions={<Filters pools={usable} pool={pool.name} search={search} />}
    >
      {pool.paused_at !== null && <PausedPools pools={[pool]} />}
      <WaitingPanel key={pool.name} pool={pool.name} search={search} />
      <ActiveJobs pool={pool.name} search={search} />
      <EndedJobs key={`ended in ${pool.name}`} pool={pool.name} search={search} />
    </Page>
  );
}

/** The pool that the address names; else the first one in which jobs wait. */
function choosePool(
  pools: readonly Pool[],
  wanted: string | undefined,
  project: string | null,
): Pool | undefined {
  const admitting = pools.filter(
    (pool) => project === null || pool.projects.some((one) => one.project === project),
  );
  const busiest = [...admitting].sort((a, b) => b.queued + b.running - (a.queued + a.running));
  return pools.find((pool) => pool.name === wanted) ?? busiest[0] ?? pools[0];
}

interface FiltersProps {
  pools: readonly Pool[];
  pool: string;
  search: QueueSearch;
}

function Filters({ pools, pool, search }: FiltersProps) {
  const navigate = useNavigate();
  const set = (change: Partial<Record<keyof QueueSearch, string | undefined>>) =>
    void navigate({
      to: ".",
      search: (old: object) => readQueueSearch({ ...old, ...change }) as never,
      replace: true,
    });
  return (
    <div className={classes.filters}>
      {pools.length > 1 && (
        <Select
          aria-label="Pool"
          w={150}
          allowDeselect={false}
          data={pools.map((one) => one.name)}
          value={pool}
          onChange={(value) => set({ pool: value ?? undefined })}
        />
      )}
      <SegmentedControl
        aria-label="Whose jobs"
        data={[
          { value: ANY, label: "All" },
          { value: "project", label: "This project" },
          { value: "mine", label: "Mine" },
        ]}
        value={search.show ?? ANY}
        onChange={(value) => set({ show: value === ANY ? undefined : value })}
      />
      <Select
        aria-label="Class"
        w={130}
        allowDeselect={false}
        data={[{ value: ANY, label: "All classes" }, ...CLASSES.map(String)]}
        value={search.class ?? ANY}
        onChange={(value) => set({ class: value === ANY || value === null ? undefined : value })}
      />
    </div>
  );
}

/** The jobs of a pool that hold a slot or are paused. */
function ActiveJobs({ pool, search }: { pool: string; search: QueueSearch }) {
  const project = useProject();
  const within = search.show === "project" ? project : null;
  const query = useQuery({ ...activeJobsQuery(within), refetchInterval: SILENCE_MS });
  const me = useQuery({ ...sessionQuery, enabled: false }).data?.user;
  const jobs = useMemo(
    () =>
      (query.data?.jobs ?? []).filter(
        (job) =>
          job.pool === pool &&
          (search.show !== "mine" || job.created_by === me) &&
          (search.class === undefined || job.priority_class === search.class),
      ),
    [query.data, pool, search.show, search.class, me],
  );
  const active = useMemo(() => jobs.filter((job) => !PAUSED.has(job.state)), [jobs]);
  const paused = useMemo(() => jobs.filter((job) => PAUSED.has(job.state)), [jobs]);
  const cut = query.data?.cut ?? false;
  return (
    <>
      {active.length > 0 && (
        <Panel title="Active" flush aside={<Count jobs={active} cut={cut} />}>
          <Jobs label="Active jobs" rows={active} kind="active" />
        </Panel>
      )}
      {paused.length > 0 && (
        <Panel title="Paused" flush aside={<Count jobs={paused} cut={cut} />}>
          <Jobs label="Paused jobs" rows={paused} kind="paused" />
        </Panel>
      )}
    </>
  );
}

/** The number of jobs; "500+" where only the first 500 were read. */
function Count({ jobs, cut }: { jobs: readonly Job[]; cut: boolean }) {
  return (
    <span className="faint">
      {cut ? `${formatCount(jobs.length)}+ jobs` : formatPlural(jobs.length, "job")}
    </span>
  );
}

interface JobsProps {
  label: string;
  rows: readonly Job[];
  kind: "active" | "paused";
}

function Jobs({ label, rows, kind }: JobsProps) {
  const navigate = useNavigate();
  const columns = useMemo(() => jobColumns(kind), [kind]);
  return (
    <DataTable
      label={label}
      rows={rows}
      columns={columns}
      rowId={(job) => job.id}
      onOpen={(job) => void navigate(describeJobPlace(job))}
    />
  );
}
