import { Button, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usePermission } from "@/api/access";
import type { ApiError } from "@/api/client";
import { activeJobsQuery, poolsQuery, workersQuery } from "@/api/queueQueries";
import type { Job, Pool, Worker } from "@/api/types";
import { findQueryError } from "@/lib/outage";
import { getServerAddress } from "@/lib/publicPath";
import { HEARTBEAT_MS, SILENCE_MS, useLiveQueue } from "@/live/useLiveQueue";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { PausedPools } from "./PausedPools";
import { PoolNumbers, PoolStrip } from "./PoolStrip";
import classes from "./Queue.module.css";
import { WorkerPanel } from "./WorkerPanel";

/** The workers of the pools that the caller may use, with the jobs in their slots. */
export function WorkersPage() {
  const query = useQuery({ ...workersQuery, refetchInterval: HEARTBEAT_MS });
  const pools = useQuery({ ...poolsQuery, refetchInterval: SILENCE_MS });
  const jobs = useQuery(activeJobsQuery(null));
  const manager = usePermission("server.pools");
  useLiveQueue("workers");
  const problem = findQueryError(query);
  const byId = new Map((jobs.data?.jobs ?? []).map((job) => [job.id, job]));
  return (
    <Page
      title="Workers"
      facts={pools.data?.length === 1 && <PoolStrip pools={pools.data} />}
      actions={
        manager.allowed && (
          <Button component={Link} to="/admin/pools" variant="default">
            Manage pools
          </Button>
        )
      }
    >
      {problem !== null && query.data === undefined ? (
        <Panel>
          <Failure error={problem as ApiError} retry={() => void query.refetch()} />
        </Panel>
      ) : query.isPending || pools.isPending ? (
        <Skeleton height={200} radius={10} />
      ) : (
        <Pools pools={pools.data ?? []} workers={query.data ?? []} jobs={byId} />
      )}
    </Page>
  );
}

interface PoolsProps {
  pools: readonly Pool[];
  workers: readonly Worker[];
  jobs: ReadonlyMap<string, Job>;
}

function Pools({ pools, workers, jobs }: PoolsProps) {
  return (
    <>
      <PausedPools pools={pools} />
      {workers.length === 0 ? (
        <NoWorker pools={pools} />
      ) : pools.length < 2 ? (
        <Workers workers={workers} jobs={jobs} />
      ) : (
        pools.map((pool) => (
          <PoolSection
            key={pool.name}
            pool={pool}
            workers={workers.filter((one) => one.pool === pool.name)}
            jobs={jobs}
          />
        ))
      )}
    </>
  );
}

interface PoolSectionProps {
  pool: Pool;
  workers: readonly Worker[];
  jobs: ReadonlyMap<string, Job>;
}

function PoolSection({ pool, workers, jobs }: PoolSectionProps) {
  return (
    <section className={classes.section} aria-label={`Pool ${pool.name}`}>
      <header>
        <h2>{pool.name}</h2>
        <PoolNumbers pool={pool} />
        {pool.description && <span>{pool.description}</span>}
      </header>
      {workers.length === 0 ? (
        <p className="muted">No worker belongs to this pool yet: its jobs wait.</p>
      ) : (
        <Workers workers={workers} jobs={jobs} />
      )}
    </section>
  );
}

function Workers({ workers, jobs }: Pick<PoolsProps, "workers" | "jobs">) {
  return (
    <div className={classes.workers}>
      {workers.map((worker) => (
        <WorkerPanel key={worker.id} worker={worker} jobs={jobs} />
      ))}
    </div>
  );
}

/** Shows pool managers how to add a machine, and other users whom to ask. */
function NoWorker({ pools }: { pools: readonly Pool[] }) {
  const manager = usePermission("server.pools");
  const [first] = pools;
  if (!manager.allowed) {
    return (
      <Panel>
        <EmptyState title={pools.length === 0 ? "No pool admits your projects" : "No worker yet"}>
          Jobs wait until a worker of a pool that admits their project offers slots. Ask an
          administrator of the server{" "}
          {pools.length === 0 ? "to admit your project to a pool." : "to add a machine."}
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel>
      <EmptyState
        title="No worker yet"
        command={`palestra worker --server ${getServerAddress()} --token-file worker.token --slots 2`}
      >
        Jobs wait until a worker offers slots; a slot executes one job at a time. Make an enrolment
        token in a pool, write it to a file, and run this command on any machine that reaches the
        server.
      </EmptyState>
      <div className={classes.way}>
        {first === undefined ? (
          <Button component={Link} to="/admin/pools">
            Create a pool
          </Button>
        ) : (
          <Button component={Link} to="/admin/pools/$pool" params={{ pool: first.name } as never}>
            Make a token of the pool {first.name}
          </Button>
        )}
      </div>
    </Panel>
  );
}
