import { useQuery } from "@tanstack/react-query";
import { usePermission } from "@/api/access";
import { poolQuery } from "@/api/pools";
import { workersQuery } from "@/api/queueQueries";
import { formatAge, formatPlural } from "@/lib/format";
import { HEARTBEAT_MS, SILENCE_MS, useLiveQueue } from "@/live/useLiveQueue";
import { Banner } from "@/ui/Banner";
import { EmptyState } from "@/ui/EmptyState";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { EnrolmentTokens } from "./EnrolmentTokens";
import { PauseButton } from "./PauseButton";
import { PoolProjects } from "./PoolProjects";
import { PoolSettings } from "./PoolSettings";
import classes from "./Pools.module.css";
import { PoolWindows } from "./PoolWindows";
import { PoolWorkers } from "./PoolWorkers";
import { describeWallTimes } from "./pool";

/** One pool: its workers, the projects that it admits, and the tokens with which workers enrol. */
export function PoolPage({ name }: { name: string }) {
  const right = usePermission("server.pools");
  if (right.allowed) return <ManagedPool name={name} />;
  return (
    <Page title={`Pool ${name}`}>
      <Panel>
        <EmptyState title="You may not manage pools">{right.reason}</EmptyState>
      </Panel>
    </Page>
  );
}

function ManagedPool({ name }: { name: string }) {
  const query = useQuery({ ...poolQuery(name), refetchInterval: SILENCE_MS });
  const workers = useQuery({ ...workersQuery, refetchInterval: HEARTBEAT_MS });
  useLiveQueue(`pool ${name}`);
  const pool = query.data;
  if (pool === undefined) {
    return (
      <Page title={`Pool ${name}`}>
        <Panel>
          <ListFrame query={query}>{null}</ListFrame>
        </Panel>
      </Page>
    );
  }
  return (
    <Page
      title={`Pool ${name}`}
      facts={
        <>
          {pool.description && <span>{pool.description}</span>}
          <span>
            {pool.slots - pool.free_slots} of {formatPlural(pool.slots, "slot")} in use
          </span>
          <span>{formatPlural(pool.all_queued ?? pool.queued, "job")} waiting</span>
          <span>{pool.all_running ?? pool.running} running</span>
          <span>wall time {describeWallTimes(pool)}</span>
        </>
      }
      actions={<PauseButton pool={pool} />}
    >
      {pool.paused_at && (
        <Banner
          tone="warn"
          title={`Paused ${formatAge(pool.paused_at)}`}
          message={pool.pause_reason}
        >
          <p className="muted">
            No job of the pool starts until it is resumed; running ones go on.
          </p>
        </Banner>
      )}
      <PoolWorkers
        query={workers}
        workers={(workers.data ?? []).filter((one) => one.pool === name)}
      />
      <PoolWindows
        pool={pool}
        workers={(workers.data ?? []).filter((one) => one.pool === name).map((one) => one.name)}
      />
      <div className={classes.columns}>
        <div>
          <PoolProjects pool={pool} />
          <EnrolmentTokens pool={name} />
        </div>
        <div>
          <PoolSettings key={pool.id} pool={pool} />
        </div>
      </div>
    </Page>
  );
}
