import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["experiment", "run", "job", "evaluation", "moved"];

/** Keeps lists of experiments and jobs current while a page shows them. */
export function useFreshExperiments(page: string): void {
  const client = useQueryClient();
  const refresh = useThrottle(() => {
    for (const queryKey of [keys.experiments, keys.jobs])
      void client.invalidateQueries({ queryKey });
  }, 1500);
  useLive(
    page,
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
