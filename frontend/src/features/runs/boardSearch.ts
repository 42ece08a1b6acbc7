/** What the board shows, as part of the URL. */
import { choice, flag, number, type Search, text, texts, tidy } from "@/lib/search";

export const AXES = ["env_step", "update", "episode", "relative", "wall"] as const;
export const SCALES = ["linear", "log", "symlog"] as const;
export const AGGREGATES = ["mean", "median", "iqm"] as const;
export const BANDS = ["none", "stdev", "stderr", "range", "interval"] as const;
export type BoardAxis = (typeof AXES)[number];
export type Aggregate = (typeof AGGREGATES)[number];
export type Band = (typeof BANDS)[number];

/** Reads the board's members of the URL; the page that shows the board keeps them. */
export function readBoardSearch(search: Search) {
  return tidy({
    x: choice(search, "x", AXES),
    smooth: number(search, "smooth", 0, 0.99),
    scale: choice(search, "scale", SCALES),
    aggregate: choice(search, "aggregate", AGGREGATES),
    band: choice(search, "band", BANDS),
    outliers: choice(search, "outliers", ["clip"]),
    faint: choice(search, "faint", ["hide"]),
    carry: flag(search, "carry"),
    start: number(search, "start"),
    end: number(search, "end"),
    panels: text(search, "panels"),
    pins: texts(search, "pins"),
    folded: texts(search, "folded"),
    /** The panel that has the width of the board. */
    large: text(search, "large"),
  });
}

export type BoardSearch = ReturnType<typeof readBoardSearch>;
export type ChangeBoard = (
  part: { [Key in keyof BoardSearch]?: BoardSearch[Key] | undefined },
) => void;
