import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Overview, Pool, Run, Worker } from "@/api/types";
import { formatAge, formatMoment, formatPlural, shortenId, splitExperimentId } from "@/lib/format";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./Home.module.css";

type Slot = Worker["slots"][number];

interface SlotsProps {
  workers: readonly Worker[];
  pools: readonly Pool[];
  running: Overview["running"];
  isLoading: boolean;
}

/** A tile for each slot of the pools that the caller may use. */
export function Slots({ workers, pools, running, isLoading }: SlotsProps) {
  const mine = new Map(running.map((run) => [run.id, run]));
  const slots = workers.flatMap((worker) => worker.slots);
  const free = workers
    .filter((worker) => worker.state === "online")
    .flatMap((worker) => worker.slots)
    .filter((slot) => !slot.busy);
  return (
    <Panel
      title="Slots"
      aside={
        slots.length > 0 && (
          <>
            <span>
              {free.length} of {formatPlural(slots.length, "slot")} free
            </span>
            <Link to="/workers">Workers</Link>
          </>
        )
      }
    >
      {isLoading ? (
        <Skeleton height={64} radius={6} />
      ) : workers.length === 0 ? (
        <p className="muted">
          {pools.length === 0
            ? "No pool admits your projects. Ask an administrator of the server to admit one."
            : "No worker has registered yet: jobs wait until one offers slots."}
        </p>
      ) : (
        <div className={classes.pools}>
          {pools
            .filter((pool) => workers.some((worker) => worker.pool === pool.name))
            .map((pool) => (
              <section key={pool.name} aria-label={`Pool ${pool.name}`}>
                {pools.length > 1 && (
                  <h3 className={classes.poolName}>
                    {pool.name}
                    {pool.paused_at && <span title={pool.pause_reason}>paused</span>}
                  </h3>
                )}
                {workers
                  .filter((worker) => worker.pool === pool.name)
                  .map((worker) => (
                    <WorkerRow key={worker.id} worker={worker} mine={mine} />
                  ))}
              </section>
            ))}
        </div>
      )}
    </Panel>
  );
}

function WorkerRow({ worker, mine }: { worker: Worker; mine: ReadonlyMap<string, Run> }) {
  return (
    <div className={classes.worker}>
      <div className={classes.workerName}>
        <b className="clip" title={worker.name}>
          {worker.name}
        </b>
        {worker.state !== "online" && <StateBadge state={worker.state} />}
        <span className="faint" title={formatMoment(worker.last_heartbeat_at)}>
          heartbeat {formatAge(worker.last_heartbeat_at)}
        </span>
      </div>
      <ol className={classes.slots}>
        {worker.slots.map((slot) => (
          <Tile key={slot.index} slot={slot} mine={mine} online={worker.state === "online"} />
        ))}
      </ol>
    </div>
  );
}

interface TileProps {
  slot: Slot;
  mine: ReadonlyMap<string, Run>;
  online: boolean;
}

function Tile({ slot, mine, online }: TileProps) {
  const [runId] = slot.run_ids;
  const own = slot.run_ids.map((id) => mine.get(id)).find((run) => run !== undefined);
  const who = [slot.user, slot.project].filter(Boolean).join(", ");
  const state = !slot.busy ? (online ? "free" : "away") : own ? "mine" : "other";
  const text = !slot.busy ? (online ? "free" : "not available") : own ? undefined : who || "busy";
  const packed = slot.run_ids.length > 1 ? `${slot.run_ids.length} seeds` : `seed ${own?.seed}`;
  const content = (
    <>
      <span className="faint">slot {slot.index}</span>
      {own ? (
        <>
          <span className="clip">{splitExperimentId(own.experiment_id).slug}</span>
          <span className="muted">{packed}, yours</span>
        </>
      ) : (
        <>
          <span className={`clip ${slot.busy ? "" : "faint"}`}>{text}</span>
          {runId && <span className="muted clip">{shortenId(runId)}</span>}
        </>
      )}
    </>
  );
  return (
    <li>
      {runId ? (
        <Link to="/runs/$runId" params={{ runId }} className={classes.tile} data-state={state}>
          {content}
        </Link>
      ) : (
        <span
          className={classes.tile}
          data-state={state}
          title={slot.busy ? "A job of a project that is not yours" : undefined}
        >
          {content}
        </span>
      )}
    </li>
  );
}
