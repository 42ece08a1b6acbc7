import type { Pool } from "@/api/types";
import { formatPlural } from "@/lib/format";
import classes from "./Queue.module.css";

/** Slots, running jobs and waiting jobs of each pool. */
export function PoolStrip({ pools }: { pools: readonly Pool[] }) {
  return (
    <>
      {pools.map((pool) => (
        <span key={pool.name} className={classes.pool}>
          <b>{pool.name}</b>
          <PoolNumbers pool={pool} />
        </span>
      ))}
    </>
  );
}

/** The numbers of a pool: all its slots, and the jobs of the caller's projects. */
export function PoolNumbers({ pool }: { pool: Pool }) {
  return (
    <>
      {pool.paused_at && <span title={pool.pause_reason}>paused</span>}
      <span>
        {pool.free_slots} of {formatPlural(pool.slots, "slot")} free
      </span>
      <span title="Jobs of your projects">{pool.running} running</span>
      <span title="Jobs of your projects">{pool.queued} waiting</span>
    </>
  );
}
