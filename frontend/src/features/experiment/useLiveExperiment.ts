import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { keys } from "@/api/queries";
import type { LiveEvent, Run } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["experiment", "run", "job", "attempt", "evaluation", "moved"];

/**
 * Follows an experiment: runs are updated in place, curves and scores are loaded again with a
 * delay. Returns whether it was moved to another project meanwhile.
 */
export function useLiveExperiment(project: string, id: string): boolean {
  const client = useQueryClient();
  const [wasMoved, setWasMoved] = useState(false);
  const curves = useThrottle(() => void client.invalidateQueries({ queryKey: keys.curves }), 2000);
  const detail = useThrottle(
    () => void client.invalidateQueries({ queryKey: keys.experiment(project, id) }),
    2000,
  );
  const take = (event: LiveEvent) => {
    if (event.type === "moved") setWasMoved(true);
    if (event.type === "run")
      client.setQueryData<Run[]>(keys.experimentRuns(project, id), (runs) =>
        replaced(runs, event.data as unknown as Run),
      );
    if (event.type === "evaluation") curves();
    if (
      event.type !== "run" ||
      stateChanged(client.getQueryData<Run[]>(keys.experimentRuns(project, id)), event)
    )
      detail();
  };
  const onResync = () => {
    void client.invalidateQueries({ queryKey: keys.experiment(project, id) });
    void client.invalidateQueries({ queryKey: keys.curves });
  };
  useLive(
    `experiment:${id}`,
    null,
    { experiment: id, type: TYPES },
    { onEvents: (events) => events.forEach(take), onResync },
  );
  return wasMoved;
}

function replaced(runs: Run[] | undefined, run: Run): Run[] | undefined {
  return runs?.map((one) => (one.id === run.id ? { ...one, ...run } : one));
}

function stateChanged(runs: Run[] | undefined, event: LiveEvent): boolean {
  const known = runs?.find((one) => one.id === event.run_id);
  return known === undefined || known.state !== (event.data as { state?: string }).state;
}
