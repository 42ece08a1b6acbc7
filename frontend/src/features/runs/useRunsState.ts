import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import {
  boundWidth,
  DEFAULT_COLUMNS,
  DEFAULT_PINNED,
  DEFAULT_SORT,
  type RunsChange,
  type RunsSearch,
  readRunsState,
  writeList,
  writeWidths,
} from "./search";

/** The state of the page, which is its URL, and what changes it. */
export function useRunsState(project: string, search: RunsSearch) {
  const navigate = useNavigate();
  const written = JSON.stringify(search);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the object is new at every rendering
  const state = useMemo(() => readRunsState(search), [written]);
  const change = useCallback(
    (part: RunsChange) =>
      void navigate({
        to: "/p/$project/runs",
        params: { project },
        // The board keeps parameters of its own in the URL.
        search: (old: object) => ({ ...old, ...part }) as RunsSearch,
        replace: true,
      }),
    [navigate, project],
  );
  const actions = useMemo(() => {
    const { columns, pinned, widths, sort } = state;
    return {
      sortBy: (key: string, isDescending: boolean) => {
        const next = `${isDescending ? "-" : ""}${key}`;
        change({ sort: next === DEFAULT_SORT ? undefined : next });
      },
      show: (keys: readonly string[]) =>
        change({
          columns: writeList(keys, DEFAULT_COLUMNS),
          pinned: writeList(
            pinned.filter((key) => keys.includes(key)),
            DEFAULT_PINNED,
          ),
        }),
      hide: (key: string) =>
        change({
          columns: writeList(
            columns.filter((one) => one !== key),
            DEFAULT_COLUMNS,
          ),
          ...(sort.replace(/^-/, "") === key ? { sort: undefined } : {}),
        }),
      move: (key: string, by: -1 | 1) =>
        change({ columns: writeList(moveKey(columns, key, by), DEFAULT_COLUMNS) }),
      pin: (key: string, isPinned: boolean) =>
        change({
          pinned: writeList(
            isPinned ? [...pinned, key] : pinned.filter((one) => one !== key),
            DEFAULT_PINNED,
          ),
        }),
      resize: (key: string, width: number) =>
        change({ widths: writeWidths({ ...widths, [key]: boundWidth(width) }) }),
    };
  }, [state, change]);
  return { state, change, ...actions };
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
