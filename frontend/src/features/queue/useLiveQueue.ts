import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["job", "worker", "attempt"];
/** Heartbeats make no event: what they change is read again this often. */
export const HEARTBEAT_MS = 5_000;

/** Keeps jobs, workers and pools fresh while one of their pages is open. */
export function useLiveQueue(page: string): void {
  const client = useQueryClient();
  const refresh = useThrottle(() => {
    for (const queryKey of [keys.jobs, keys.openRuns, keys.workers, keys.pools])
      void client.invalidateQueries({ queryKey });
  }, 1000);
  useLive(page, null, { type: TYPES }, { onEvents: refresh, onResync: refresh });
}
