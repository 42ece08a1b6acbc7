import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["experiment", "run", "job", "worker", "pool", "attempt", "evaluation", "moved"];
/** Heartbeats create no event, so the data that they change is polled at this interval. */
export const HEARTBEAT_MS = 5_000;

/** Keeps what Home shows current, of all projects of the caller. */
export function useLiveHome(): void {
  const client = useQueryClient();
  const refresh = useThrottle(() => {
    for (const queryKey of [keys.overview, keys.workers, keys.pools, keys.experiments])
      void client.invalidateQueries({ queryKey });
  }, 1500);
  useLive(
    "home",
    null,
    { type: TYPES },
    {
      onEvents: (events) => {
        if (events.length > 0) refresh();
      },
      onResync: refresh,
    },
  );
}
