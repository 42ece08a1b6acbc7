import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ApiError } from "@/api/client";
import { jobsQuery, poolsQuery, workersQuery } from "@/api/queueQueries";
import type { Job, Worker } from "@/api/types";
import { ago, bytes, moment, shortId } from "@/lib/format";
import { problemOf } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import { JobName, jobPlace } from "./JobName";
import { PoolStrip } from "./PoolStrip";
import classes from "./Queue.module.css";
import { HEARTBEAT_MS, useLiveQueue } from "./useLiveQueue";

const MIB = 2 ** 20;
const OPTIONS = "--token-file FILE --pool default --slots 2";

export function WorkersPage() {
  const query = useQuery({ ...workersQuery, refetchInterval: HEARTBEAT_MS });
  const pools = useQuery({ ...poolsQuery, refetchInterval: HEARTBEAT_MS });
  const jobs = useQuery(jobsQuery(null));
  useLiveQueue("workers");
  const workers = query.data ?? [];
  const problem = problemOf(query);
  const byId = new Map((jobs.data?.jobs ?? []).map((job) => [job.id, job]));
  return (
    <Page title="Workers" facts={<PoolStrip pools={pools.data ?? []} />}>
      {problem !== null && query.data === undefined ? (
        <Panel>
          <Failure error={problem as ApiError} retry={() => void query.refetch()} />
        </Panel>
      ) : query.isPending ? (
        <Skeleton height={200} radius={10} />
      ) : workers.length === 0 ? (
        <Panel>
          <EmptyState
            title="No worker yet"
            command={`palestra worker --server ${window.location.origin} ${OPTIONS}`}
          >
            Jobs wait until a worker offers slots; a slot executes one job at a time. This command
            starts a worker on any machine that reaches the server.
          </EmptyState>
        </Panel>
      ) : (
        <div className={classes.workers}>
          {workers.map((worker) => (
            <WorkerPanel key={worker.id} worker={worker} jobs={byId} />
          ))}
        </div>
      )}
    </Page>
  );
}

function WorkerPanel({ worker, jobs }: { worker: Worker; jobs: ReadonlyMap<string, Job> }) {
  const busy = worker.slots.filter((slot) => slot.busy).length;
  return (
    <Panel
      title={
        <span className="row">
          {worker.name}
          <StateBadge state={worker.state} />
        </span>
      }
      aside={
        <span>
          {busy} of {worker.slots.length} slots busy
        </span>
      }
    >
      <ol className={classes.slots}>
        {worker.slots.map((slot) => (
          <SlotTile
            key={slot.index}
            slot={slot}
            job={slot.job_id ? jobs.get(slot.job_id) : undefined}
          />
        ))}
      </ol>
      <div className={classes.foot}>
        <span>{worker.host}</span>
        <span>pool {worker.pool}</span>
        <span>{worker.gpus.length > 0 ? gpuText(worker) : "CPU only"}</span>
        <span>version {worker.version}</span>
        <span title={moment(worker.last_heartbeat_at)}>
          last heartbeat {ago(worker.last_heartbeat_at)}
        </span>
      </div>
    </Panel>
  );
}

function SlotTile({ slot, job }: { slot: Worker["slots"][number]; job: Job | undefined }) {
  const [runId] = slot.run_ids;
  if (!runId) {
    return (
      <li className={classes.slot} data-free>
        <span className="faint">slot {slot.index}</span>
        <span className="faint">{slot.busy ? "busy" : "free"}</span>
      </li>
    );
  }
  return (
    <li>
      <Link
        {...(job ? jobPlace(job) : ({ to: "/runs/$runId", params: { runId } } as const))}
        className={classes.slot}
        title={slot.run_ids.join("\n")}
      >
        <span className="faint">slot {slot.index}</span>
        {job ? (
          <JobName job={job} linked={false} />
        ) : (
          <span className="clip">{shortId(runId)}</span>
        )}
        <span className="muted">
          {job ? `${job.schedule.replaceAll("_", " ")}, attempt ${job.attempts}` : "working"}
        </span>
      </Link>
    </li>
  );
}

function gpuText({ gpus }: Worker): string {
  const [first] = gpus;
  if (first === undefined) return "";
  return `${gpus.length} × ${first.name}, ${bytes(first.memory_mib * MIB)}`;
}
