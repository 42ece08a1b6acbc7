import { useMemo, useState } from "react";
import type { Job } from "@/api/types";

/** The selected ones of the waiting jobs that are loaded, or all that match. */
export function useSelection(jobs: readonly Job[]) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setIsAll] = useState(false);
  const selected = useMemo(
    () => (isAll ? jobs : jobs.filter((job) => chosen.has(job.id))),
    [jobs, chosen, isAll],
  );
  const ids = useMemo(() => new Set(selected.map((job) => job.id)), [selected]);
  return {
    selected,
    ids,
    isAll: isAll && selected.length > 0,
    select: (some: readonly string[], isSelected: boolean) => {
      const next = new Set(ids);
      for (const id of some)
        if (isSelected) next.add(id);
        else next.delete(id);
      setIsAll(false);
      setChosen(next);
    },
    takeAll: () => setIsAll(true),
    clear: () => {
      setIsAll(false);
      setChosen(new Set());
    },
  };
}
