import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["job", "worker", "attempt"];
/** Heartbeats create no event, so the data that they change is polled at this interval. */
export const HEARTBEAT_MS = 5_000;

/** Keeps jobs, workers and pools current while a page shows them. */
export function useLiveQueue(page: string): void {
  const client = useQueryClient();
  const refresh = useThrottle(() => {
    for (const queryKey of [keys.waiting, keys.jobs, keys.openRuns, keys.workers, keys.pools])
      void client.invalidateQueries({ queryKey });
  }, 1000);
  useLive(page, null, { type: TYPES }, { onEvents: refresh, onResync: refresh });
}
