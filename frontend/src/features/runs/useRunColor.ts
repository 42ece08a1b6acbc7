import { useCallback, useMemo } from "react";
import type { Run } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import { useScheme } from "@/ui/scheme";
import { chooseRunColor } from "./groupKeys";
import type { RunItem } from "./runItems";

/** Returns the colour of each run that is loaded; it is the same in the table and on the board. */
export function useRunColor(
  runs: readonly Run[],
  items: readonly RunItem[],
  groupBy: readonly string[],
): (runId: string) => string {
  const scheme = useScheme();
  const known = useMemo(() => {
    const members = items.flatMap((item) => (item.kind === "run" ? [item.run] : []));
    return new Map([...runs, ...members].map((run) => [run.id, run]));
  }, [runs, items]);
  return useCallback(
    (runId) => {
      const run = known.get(runId);
      return run === undefined
        ? chooseGroupColor(runId, scheme)
        : chooseRunColor(run, groupBy, scheme);
    },
    [known, groupBy, scheme],
  );
}
