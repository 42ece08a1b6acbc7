/** Saved views: what the server keeps of the page, and what the page makes of it. */
import type { RunsPageState } from "@/api/types";
import { DEFAULTS, type RunsSearch, type RunsState } from "./search";

type Setting = string | number | boolean | readonly string[];

/** The state of a view over the defaults of the page. */
export function readView(state: RunsPageState): RunsState {
  const columns = state.columns ?? DEFAULTS.columns;
  const pinned = state.pinned ?? DEFAULTS.pinned;
  return {
    filter: state.filter,
    sort: state.sort || DEFAULTS.sort,
    columns,
    pinned: pinned.filter((key) => columns.includes(key)),
    widths: state.widths,
    groupBy: state.group_by,
    show: state.show,
    split: state.split ?? DEFAULTS.split,
  };
}

/** What the server is given to keep. */
export function writeView(
  state: RunsState,
  board: Readonly<Record<string, Setting>>,
): Partial<RunsPageState> {
  return {
    filter: state.filter,
    sort: state.sort,
    columns: [...state.columns],
    pinned: [...state.pinned],
    widths: { ...state.widths },
    group_by: [...state.groupBy],
    show: state.show,
    split: Math.round(state.split),
    board: board as RunsPageState["board"],
  };
}

/** The board's settings in the URL; an enlarged panel is a look at the view, and no part of it. */
export function readBoardSettings(search: RunsSearch): Record<string, Setting> {
  const { filter, sort, columns, pinned, widths, group, show, split, view, large, ...board } =
    search;
  return board as Record<string, Setting>;
}

/** Whether the URL changes something of the view that is open. */
export function isChanged(
  search: RunsSearch,
  saved: Readonly<Record<string, unknown>> | undefined,
): boolean {
  const { view, large, ...own } = search;
  const board = readBoardSettings(search);
  const page = Object.keys(own).filter((key) => !(key in board));
  const sort = (some: Readonly<Record<string, unknown>>) =>
    JSON.stringify(Object.entries(some).sort(([a], [b]) => a.localeCompare(b)));
  return page.length > 0 || sort(board) !== sort(saved ?? {});
}
