import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
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
    return {
      sortBy: (key: string, isDescending: boolean) =>
        change({ sort: `${isDescending ? "-" : ""}${key}` }),
      showColumns: (keys: readonly string[]) =>
        change({ columns: keys, pinned: pinned.filter((key) => keys.includes(key)) }),
      hide: (key: string) =>
        change({
          columns: columns.filter((one) => one !== key),
          pinned: pinned.filter((one) => one !== key),
          ...(sort.replace(/^-/, "") === key ? { sort: base.sort } : {}),
        }),
      move: (key: string, by: -1 | 1) => change({ columns: moveKey(columns, key, by) }),
      pin: (key: string, isPinned: boolean) =>
        change({ pinned: isPinned ? [...pinned, key] : pinned.filter((one) => one !== key) }),
      resize: (key: string, width: number) =>
        change({ widths: { ...widths, [key]: boundWidth(width) } }),
    };
  }, [state, change, base]);
  return { state, change, navigateTo, ...actions };
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
