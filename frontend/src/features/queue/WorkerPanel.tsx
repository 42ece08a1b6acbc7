import { Link } from "@tanstack/react-router";
import type { Job, Worker } from "@/api/types";
import { formatAge, formatBytes, formatMoment, shortenId } from "@/lib/format";
import { DrainReason } from "@/ui/DrainReason";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import { WrongClock } from "@/ui/WrongClock";
import { describeJobPlace, JobName } from "./JobName";
import classes from "./Queue.module.css";

const MIB = 2 ** 20;

type Slot = Worker["slots"][number];

/** A worker with its slots. */
export function WorkerPanel({ worker, jobs }: { worker: Worker; jobs: ReadonlyMap<string, Job> }) {
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
      {worker.drain_reason && (
        <div className={classes.reason}>
          <DrainReason worker={worker} />
        </div>
      )}
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
        <span>{worker.gpus.length > 0 ? formatGpus(worker) : "CPU only"}</span>
        <span>version {worker.version}</span>
        <span title={formatMoment(worker.last_heartbeat_at)}>
          last heartbeat {formatAge(worker.last_heartbeat_at)}
        </span>
        <WrongClock worker={worker} />
      </div>
    </Panel>
  );
}

function SlotTile({ slot, job }: { slot: Slot; job: Job | undefined }) {
  const [runId] = slot.run_ids;
  if (!slot.busy) {
    return (
      <li className={classes.slot} data-state="free">
        <span className="faint">slot {slot.index}</span>
        <span className="faint">free</span>
      </li>
    );
  }
  if (!runId) {
    return (
      <li
        className={classes.slot}
        data-state="foreign"
        title="A job of a project that is not yours"
      >
        <span className="faint">slot {slot.index}</span>
        <span>busy</span>
        {slot.user && (
          <span className="muted clip">
            {slot.user}, {slot.project}
          </span>
        )}
      </li>
    );
  }
  return (
    <li>
      <Link
        {...(job ? describeJobPlace(job) : ({ to: "/runs/$runId", params: { runId } } as const))}
        className={classes.slot}
        title={slot.run_ids.join("\n")}
      >
        <span className="faint">slot {slot.index}</span>
        {job ? (
          <JobName job={job} linked={false} />
        ) : (
          <span className="clip">{shortenId(runId)}</span>
        )}
        <span className="muted clip">
          {job ? `${job.schedule.replaceAll("_", " ")}, attempt ${job.attempts}` : "working"}
          {slot.user && ` by ${slot.user}`}
        </span>
      </Link>
    </li>
  );
}

function formatGpus({ gpus }: Worker): string {
  const [first] = gpus;
  if (first === undefined) return "";
  return `${gpus.length} × ${first.name}, ${formatBytes(first.memory_mib * MIB)}`;
}
