/** The state of the page in its URL, and the queries that it stands for. */
import type { ComparisonQuery, ComparisonResult, SeriesQuery } from "@/api/types";
import { choice, flag, number, type Search, text, tidy } from "@/lib/search";

export const SCORES = ["final", "area", "max"] as const;
export const AXES = ["env_step", "update", "episode", "relative"] as const;
const DEFAULT_SERIES = "evaluation/mean";
const BUCKETS = 300;

export function readCompareSearch(search: Search) {
  return tidy({
    runs: text(search, "runs"),
    experiments: text(search, "experiments"),
    filter: text(search, "filter"),
    by: text(search, "by"),
    score: choice(search, "score", SCORES),
    last: number(search, "last", 1, 1000),
    /** Whether fields that are equal are shown. */
    all: flag(search, "all"),
    series: text(search, "series"),
    x: choice(search, "x", AXES),
    /** The hyperparameter of the scatter plot. */
    parameter: text(search, "parameter"),
    /** The environment of the charts of hyperparameters. */
    env: text(search, "env"),
    /** IDs of the two runs whose code is compared. */
    left: text(search, "left"),
    right: text(search, "right"),
  });
}

export type CompareSearch = ReturnType<typeof readCompareSearch>;
export type CompareChange = { [Key in keyof CompareSearch]?: CompareSearch[Key] | undefined };

function readList(list: string | undefined): string[] {
  return [...new Set((list ?? "").split(",").map((one) => one.trim()))].filter((one) => one !== "");
}

/** Whether the URL names anything to compare. */
export function isEmpty(search: CompareSearch): boolean {
  return !search.runs && !search.experiments && !search.filter;
}

export function buildComparisonQuery(project: string, search: CompareSearch): ComparisonQuery {
  return {
    runs: readList(search.runs),
    experiments: readList(search.experiments),
    filter: search.filter ? `${search.filter} project:${project}` : "",
    group_by: readList(search.by).slice(0, 5),
    score: {
      kind: search.score ?? "final",
      last: search.last ?? 1,
      source: "evaluation",
      missing: "leave_out",
    },
  };
}

/** The query of the members' curves: of a run its own, of a group its mean with an interval. */
export function buildCurvesQuery(result: ComparisonResult, search: CompareSearch): SeriesQuery {
  const series = search.series ?? DEFAULT_SERIES;
  const single = result.members.filter((member) => member.run_ids.length === 1);
  const groups = result.members.filter((member) => member.run_ids.length > 1);
  return {
    select: single.map((member) => ({ run_id: member.run_ids[0] as string, series })),
    groups: groups.map((member) => ({
      name: member.name,
      run_ids: member.run_ids,
      series,
      carry_forward: false,
    })),
    x: search.x ?? "env_step",
    buckets: BUCKETS,
    columns: ["mean"],
    statistics: ["mean", "interval"],
  };
}
