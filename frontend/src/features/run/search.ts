import { choice, flag, number, type Search, text, tidy } from "@/lib/search";

export const AXES = ["env_step", "update", "episode", "wall", "relative"] as const;
export const TABS = [
  "curves",
  "evaluations",
  "episodes",
  "videos",
  "log",
  "files",
  "attempts",
  "provenance",
] as const;
export type Tab = (typeof TABS)[number];

export function readRunSearch(search: Search) {
  return tidy({
    tab: choice(search, "tab", TABS),
    x: choice(search, "x", AXES),
    smooth: number(search, "smooth", 0, 0.99),
    start: number(search, "start"),
    end: number(search, "end"),
    superseded: flag(search, "superseded"),
    q: text(search, "q"),
    focus: text(search, "focus"),
    evaluation: text(search, "evaluation"),
  });
}

export type RunSearch = ReturnType<typeof readRunSearch>;
export type ChangeSearch = (
  part: { [Key in keyof RunSearch]?: RunSearch[Key] | undefined },
) => void;
