import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "./useLive";

const TYPES = ["job", "worker", "attempt", "pool"];
/** Heartbeats and new estimates create no event, so what they change is polled. */
export const HEARTBEAT_MS = 5_000;
/** Changes of pools and jobs are streamed; only what follows from a silent worker is polled. */
export const SILENCE_MS = 30_000;

/** Time between two refreshes of the waiting jobs, and where several pages of them are loaded. */
const REFRESH_MS = 1_000;
const LONG_REFRESH_MS = 5_000;

/** Keeps jobs, workers and pools current while a page shows them. */
export function useLiveQueue(page: string): void {
  const client = useQueryClient();
  const readWaiting = () => void client.invalidateQueries({ queryKey: keys.waiting });
  const refreshWaiting = useThrottle(readWaiting, REFRESH_MS);
  const refreshLong = useThrottle(readWaiting, LONG_REFRESH_MS);
  const refreshRest = useThrottle(() => {
    for (const queryKey of [keys.jobs, keys.workers, keys.pools])
      void client.invalidateQueries({ queryKey });
  }, REFRESH_MS);
  const refresh = () => {
    refreshRest();
    if (countPages(client) > 1) refreshLong();
    else refreshWaiting();
  };
  useLive(page, null, { type: TYPES }, { onEvents: refresh, onResync: refresh });
}

/** The largest number of pages of waiting jobs that a list shows, all of which are read again. */
function countPages(client: QueryClient): number {
  const lists = client.getQueriesData<InfiniteData<unknown>>({
    queryKey: keys.waiting,
    type: "active",
  });
  return Math.max(0, ...lists.map(([, data]) => data?.pages.length ?? 0));
}
