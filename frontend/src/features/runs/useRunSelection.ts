import { useCallback, useMemo, useRef, useState } from "react";
import type { GridSelection } from "@/ui/DataGrid";
import type { RunItem } from "./runItems";

const NONE: ReadonlySet<string> = new Set();

/** The selected ones of the runs that are loaded, or all that fit the filter. */
export function useRunSelection(items: readonly RunItem[], filter: string) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(NONE);
  /** The filter of which all runs are meant. */
  const [allOf, setAllOf] = useState<string | null>(null);
  const last = useRef<string | null>(null);
  const runs = useMemo(() => items.filter((item) => item.kind === "run"), [items]);
  const isAll = allOf === filter;
  const ids = useMemo(
    () => new Set(runs.filter(({ id }) => isAll || chosen.has(id)).map(({ id }) => id)),
    [runs, chosen, isAll],
  );
  const latest = useRef({ runs, ids });
  latest.current = { runs, ids };
  const set = useCallback((some: readonly string[], isSelected: boolean) => {
    const next = new Set(latest.current.ids);
    for (const id of some)
      if (isSelected) next.add(id);
      else next.delete(id);
    setAllOf(null);
    setChosen(next);
  }, []);
  const grid = useMemo(
    (): GridSelection<RunItem> => ({
      ids,
      isSelectable: (item) => item.kind === "run",
      name: (item) =>
        item.kind === "run" ? `Select seed ${item.run.seed} of ${item.run.experiment_id}` : "",
      select: (id, isSelected, toLast) => {
        const order = latest.current.runs.map((item) => item.id);
        const [from, to] = [order.indexOf(last.current ?? ""), order.indexOf(id)];
        const range =
          toLast && from >= 0 ? order.slice(Math.min(from, to), Math.max(from, to) + 1) : [id];
        last.current = id;
        set(range, isSelected);
      },
      selectAll: (isSelected) =>
        set(
          latest.current.runs.map((item) => item.id),
          isSelected,
        ),
    }),
    [ids, set],
  );
  return {
    grid,
    ids,
    isAll: isAll && ids.size > 0,
    takeAll: () => setAllOf(filter),
    clear: () => {
      setAllOf(null);
      setChosen(NONE);
    },
  };
}
