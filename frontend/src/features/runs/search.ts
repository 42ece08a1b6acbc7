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
const NONE = "none";

export function readRunsState(search: RunsSearch): RunsState {
  const columns = readList(search.columns) ?? DEFAULT_COLUMNS;
  const pinned = readList(search.pinned) ?? DEFAULT_PINNED;
  const split = Number(search.split);
  return {
    filter: search.filter ?? "",
    sort: search.sort ?? DEFAULT_SORT,
    columns,
    pinned: pinned.filter((key) => columns.includes(key)),
    widths: readWidths(search.widths),
    groupBy: readList(search.group) ?? [],
    show: search.show ?? "both",
    split: split >= 20 && split <= 80 ? split : 50,
  };
}

/** Writes a list of keys; `undefined` for the default, which keeps URLs short. */
export function writeList(
  keys: readonly string[],
  standard: readonly string[] = [],
): string | undefined {
  const isStandard = keys.length === standard.length && keys.every((key, i) => key === standard[i]);
  return isStandard ? undefined : keys.length === 0 ? NONE : keys.join(",");
}

export function writeWidths(widths: Readonly<Record<string, number>>): string | undefined {
  const pairs = Object.entries(widths).map(([key, width]) => `${key}:${width}`);
  return pairs.length === 0 ? undefined : pairs.join(",");
}

export function boundWidth(width: number): number {
  return Math.round(Math.min(WIDEST, Math.max(NARROWEST, width)));
}

function readList(written: string | undefined): readonly string[] | undefined {
  if (written === undefined) return undefined;
  if (written === NONE) return [];
  return [...new Set(written.split(",").filter((key) => key !== ""))];
}

function readWidths(written: string | undefined): Record<string, number> {
  const found: Record<string, number> = {};
  for (const pair of written?.split(",") ?? []) {
    const colon = pair.lastIndexOf(":");
    const width = Number(pair.slice(colon + 1));
    if (colon > 0 && Number.isFinite(width) && width > 0)
      found[pair.slice(0, colon)] = boundWidth(width);
  }
  return found;
}
