import type { Pool } from "@/api/types";
import { plural } from "@/lib/format";
import classes from "./Queue.module.css";

/** Slots, running jobs and waiting jobs of each pool. */
export function PoolStrip({ pools }: { pools: readonly Pool[] }) {
  return (
    <>
      {pools.map((pool) => (
        <span key={pool.name} className={classes.pool}>
          <b>{pool.name}</b>
          <span>
            {pool.free_slots} of {plural(pool.slots, "slot")} free
          </span>
          <span>{pool.running} running</span>
          <span>{pool.queued} waiting</span>
        </span>
      ))}
    </>
  );
}
