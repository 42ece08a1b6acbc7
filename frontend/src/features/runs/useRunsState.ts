import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { addKey, readOrder, removeKey, type SortKey, writeOrder } from "@/lib/sortOrder";
import {
  boundWidth,
  DEFAULTS,
  type RunsChange,
  type RunsSearch,
  type RunsState,
  readRunsState,
  writeRunsState,
} from "./search";

/** The state of the page: its URL over the state of the view that is open. */
export function useRunsState(project: string, search: RunsSearch, view: RunsState | null) {
  const navigate = useNavigate();
  const base = view ?? DEFAULTS;
  const written = JSON.stringify(search);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the object is new at every rendering
  const state = useMemo(() => readRunsState(search, base), [written, base]);
  const navigateTo = useCallback(
    (change: (old: RunsSearch) => RunsChange) =>
      void navigate({
        to: "/p/$project/runs",
        params: { project },
        search: ((old: RunsSearch) => change(old)) as never,
        replace: true,
      }),
    [navigate, project],
  );
  const change = useCallback(
    (part: Partial<RunsState>) =>
      // The board keeps parameters of its own in the URL.
      navigateTo((old) => ({ ...old, ...writeRunsState(part, base) })),
    [navigateTo, base],
  );
  const actions = useMemo(() => {
    const { columns, pinned, widths, sort } = state;
    const showColumns = (keys: readonly string[]) =>
      change({
        columns: keys,
        pinned: pinned.filter((key) => keys.includes(key)),
        // A column that is not shown has no heading from which it could be left out.
        sort: columns
          .filter((key) => !keys.includes(key))
          .reduce((left, key) => leaveOut(left, key, base.sort), sort),
      });
    return {
      sortBy: (key: SortKey, isAdded: boolean) =>
        change({ sort: writeOrder(isAdded ? addKey(readOrder(sort), key) : [key]) }),
      unsort: (key: string) => change({ sort: leaveOut(sort, key, base.sort) }),
      showColumns,
      hide: (key: string) => showColumns(columns.filter((one) => one !== key)),
      move: (key: string, by: -1 | 1) => change({ columns: moveKey(columns, key, by) }),
      pin: (key: string, isPinned: boolean) =>
        change({ pinned: isPinned ? [...pinned, key] : pinned.filter((one) => one !== key) }),
      resize: (key: string, width: number) =>
        change({ widths: { ...widths, [key]: boundWidth(width) } }),
    };
  }, [state, change, base]);
  return { state, change, navigateTo, ...actions };
}

/** The order without a key, or the usual one if nothing is left of it. */
function leaveOut(sort: string, key: string, usual: string): string {
  return writeOrder(removeKey(readOrder(sort), key)) || usual;
}

/** Moves a key by one place in a list. */
export function moveKey(keys: readonly string[], key: string, by: -1 | 1): string[] {
  const from = keys.indexOf(key);
  const to = from + by;
  const moved = [...keys];
  if (from < 0 || to < 0 || to >= keys.length) return moved;
  moved.splice(from, 1);
  moved.splice(to, 0, key);
  return moved;
}
