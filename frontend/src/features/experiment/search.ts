import { choice, flag, number, numbers, type Search, text, tidy } from "@/lib/search";

export const AXES = ["env_step", "update", "episode", "wall", "relative"] as const;

export function readExperimentSearch(search: Search) {
  return tidy({
    x: choice(search, "x", AXES),
    start: number(search, "start"),
    end: number(search, "end"),
    seeds: choice(search, "seeds", ["hide"]),
    carry: flag(search, "carry"),
    rivals: choice(search, "rivals", ["hide"]),
    last: number(search, "last", 1, 1_000),
    hide: numbers(search, "hide"),
    runs: choice(search, "runs", ["tiles", "table", "matrix"]),
    against: text(search, "against"),
    changes: flag(search, "changes"),
  });
}

export type ExperimentSearch = ReturnType<typeof readExperimentSearch>;
export type ChangeSearch = (
  part: { [Key in keyof ExperimentSearch]?: ExperimentSearch[Key] | undefined },
) => void;
