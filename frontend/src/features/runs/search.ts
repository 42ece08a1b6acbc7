import { choice, type Search, text, tidy } from "@/lib/search";
import { readBoardSearch } from "./boardSearch";

export const PANES = ["table", "board", "both"] as const;
export type Pane = (typeof PANES)[number];

export const DEFAULT_SORT = "-created";
export const DEFAULT_PINNED: readonly string[] = ["name"];
export const DEFAULT_COLUMNS: readonly string[] = [
  "name",
  "state",
  "agent",
  "env",
  "seed",
  "evaluation/mean.best",
  "evaluation/mean.last",
  "evaluation/mean.mean10",
  "env_step",
  "created",
  "user",
];

/** The state of the page in its URL; lists are texts with commas, which no key contains. */
export function readRunsSearch(search: Search) {
  return tidy({
    filter: text(search, "filter"),
    sort: text(search, "sort"),
    columns: text(search, "columns"),
    pinned: text(search, "pinned"),
    widths: text(search, "widths"),
    group: text(search, "group"),
    show: choice(search, "show", PANES),
    split: text(search, "split"),
    view: text(search, "view"),
    ...readBoardSearch(search),
  });
}

export type RunsSearch = ReturnType<typeof readRunsSearch>;
/** A change of the URL; `undefined` removes a parameter. */
export type RunsChange = { [Key in keyof RunsSearch]?: RunsSearch[Key] | undefined };

/** What the page shows, with the defaults filled in. */
export interface RunsState {
  filter: string;
  sort: string;
  columns: readonly string[];
  pinned: readonly string[];
  /** Widths of columns in pixels, where they were changed. */
  widths: Readonly<Record<string, number>>;
  groupBy: readonly string[];
  show: Pane;
  /** Width of the table as a part of both, in percent. */
  split: number;
}

const NARROWEST = 48;
const WIDEST = 900;
/** Stands in the URL for a list without items, and for a filter without terms. */
const NONE = "none";
const NO_TERMS = " ";

/** What the page shows without a view and without parameters in its URL. */
export const DEFAULTS: RunsState = {
  filter: "",
  sort: DEFAULT_SORT,
  columns: DEFAULT_COLUMNS,
  pinned: DEFAULT_PINNED,
  widths: {},
  groupBy: [],
  show: "both",
  split: 50,
};

/** Returns what the page shows: the parameters of the URL over those of `base`. */
export function readRunsState(search: RunsSearch, base: RunsState = DEFAULTS): RunsState {
  const columns = readList(search.columns) ?? base.columns;
  const pinned = readList(search.pinned) ?? base.pinned;
  const split = Number(search.split);
  return {
    filter: search.filter?.trim() ?? base.filter,
    sort: search.sort ?? base.sort,
    columns,
    pinned: pinned.filter((key) => columns.includes(key)),
    widths: search.widths === undefined ? base.widths : readWidths(search.widths),
    groupBy: readList(search.group) ?? base.groupBy,
    show: search.show ?? base.show,
    split: split >= 20 && split <= 80 ? split : base.split,
  };
}

/** Returns the parameters that show a state; those that `base` has already are left out. */
export function writeRunsState(state: Partial<RunsState>, base: RunsState = DEFAULTS): RunsChange {
  const { filter, sort, columns, pinned, widths, groupBy, show, split } = state;
  return {
    ...(filter === undefined
      ? {}
      : { filter: filter === base.filter ? undefined : filter || NO_TERMS }),
    ...(sort === undefined ? {} : { sort: sort === base.sort ? undefined : sort }),
    ...(columns === undefined ? {} : { columns: writeList(columns, base.columns) }),
    ...(pinned === undefined ? {} : { pinned: writeList(pinned, base.pinned) }),
    ...(widths === undefined ? {} : { widths: writeWidths(widths, base.widths) }),
    ...(groupBy === undefined ? {} : { group: writeList(groupBy, base.groupBy) }),
    ...(show === undefined ? {} : { show: show === base.show ? undefined : show }),
    ...(split === undefined ? {} : { split: split === base.split ? undefined : String(split) }),
  };
}

export function boundWidth(width: number): number {
  return Math.round(Math.min(WIDEST, Math.max(NARROWEST, width)));
}

function writeList(keys: readonly string[], base: readonly string[]): string | undefined {
  const isSame = keys.length === base.length && keys.every((key, i) => key === base[i]);
  return isSame ? undefined : keys.length === 0 ? NONE : keys.join(",");
}

function writeWidths(
  widths: Readonly<Record<string, number>>,
  base: Readonly<Record<string, number>>,
): string | undefined {
  const write = (some: Readonly<Record<string, number>>) =>
    Object.entries(some)
      .map(([key, width]) => `${key}:${width}`)
      .join(",");
  const written = write(widths);
  return written === write(base) ? undefined : written || NONE;
}

function readList(written: string | undefined): readonly string[] | undefined {
  if (written === undefined) return undefined;
  if (written === NONE) return [];
  return [...new Set(written.split(",").filter((key) => key !== ""))];
}

function readWidths(written: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const pair of written.split(",")) {
    const colon = pair.lastIndexOf(":");
    const width = Number(pair.slice(colon + 1));
    if (colon > 0 && Number.isFinite(width) && width > 0)
      found[pair.slice(0, colon)] = boundWidth(width);
  }
  return found;
}
