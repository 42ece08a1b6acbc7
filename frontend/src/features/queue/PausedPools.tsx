import type { Pool } from "@/api/types";
import { Banner } from "@/ui/Banner";

/** Shows for each paused pool that its jobs do not start, and why. */
export function PausedPools({ pools }: { pools: readonly Pool[] }) {
  return pools
    .filter((pool) => pool.paused_at !== null)
    .map((pool) => (
      <Banner
        key={pool.name}
        tone="warn"
        title={`The pool ${pool.name} is paused: no job of it starts, running ones go on`}
        message={pool.pause_reason}
      />
    ));
}
