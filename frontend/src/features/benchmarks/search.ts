/** The state of the page in its URL, and the queries that it stands for. */
import type { StatisticsQuery } from "@/api/types";
import { choice, number, type Search, text, tidy } from "@/lib/search";

export const SCORES = ["final", "area", "max"] as const;
export const NORMALISATIONS = ["min_max", "atari-human-1", "mujoco-d4rl-1", "given"] as const;
export const MOST_LAST = 1000;
/** Most groups of which each pair is compared. */
export const MOST_COMPARED = 8;

export function readBenchmarksSearch(search: Search) {
  return tidy({
    filter: text(search, "filter"),
    /** Fields of the definition whose values make the groups, with commas. */
    by: text(search, "by"),
    score: choice(search, "score", SCORES),
    last: number(search, "last", 1, MOST_LAST),
    normalise: choice(search, "normalise", NORMALISATIONS),
    /** Scores that become 0 and 1, as `CartPole-v1=22,500; Pendulum-v1=-1200,-150`. */
    references: text(search, "references"),
  });
}

export type BenchmarksSearch = ReturnType<typeof readBenchmarksSearch>;
export type BenchmarksChange = {
  [Key in keyof BenchmarksSearch]?: BenchmarksSearch[Key] | undefined;
};

type References = Record<string, { random: number; reference: number }>;

/** The fields that make the groups. */
export function readFields(by: string | undefined): string[] {
  const fields = (by ?? "").split(/[\s,]+/).filter((one) => one !== "");
  return fields.length > 0 ? [...new Set(fields)].slice(0, 5) : ["experiment"];
}

/** Reads the reference scores; `fault` is a sentence on the first part that is none. */
export function readReferences(typed: string | undefined): {
  references: References;
  fault: string | null;
} {
  const references: References = {};
  for (const part of (typed ?? "").split(";").map((one) => one.trim())) {
    if (part === "") continue;
    const [environment = "", scores = ""] = part.split(/=(?=[^=]*$)/);
    const [random, reference, ...rest] = scores.split(",").map((one) => Number(one.trim() || "-"));
    const isWhole = Number.isFinite(random) && Number.isFinite(reference) && rest.length === 0;
    if (environment.trim() === "" || !isWhole)
      return {
        references,
        fault: `“${part}” must be ENVIRONMENT=RANDOM,REFERENCE, for example CartPole-v1=22,500.`,
      };
    references[environment.trim()] = { random: random ?? 0, reference: reference ?? 1 };
  }
  return { references, fault: null };
}

/** The filter within the project; its term comes last, so positions in messages are right. */
export function filterOf(project: string, filter: string | undefined): string {
  return `${filter ?? ""} project:${project}`.trim();
}

function buildCommon(project: string, search: BenchmarksSearch): StatisticsQuery {
  return {
    filter: filterOf(project, search.filter),
    group_by: readFields(search.by),
    score: {
      kind: search.score ?? "final",
      last: search.last ?? 1,
      source: "evaluation",
      missing: "leave_out",
    },
  };
}

/** The query of raw scores per group and environment, which any runs can answer. */
export function buildCellsQuery(project: string, search: BenchmarksSearch): StatisticsQuery {
  return { ...buildCommon(project, search), parts: [] };
}

/** The query of the statistics over environments of some number of groups. */
export function buildFiguresQuery(
  project: string,
  search: BenchmarksSearch,
  groups: number,
): StatisticsQuery {
  return {
    ...buildCommon(project, search),
    normalisation: buildNormalisation(search),
    parts: [
      ...(["aggregates", "profile", "efficiency"] as const),
      ...(groups <= MOST_COMPARED ? (["improvement"] as const) : []),
    ],
  };
}

function buildNormalisation(
  search: BenchmarksSearch,
): NonNullable<StatisticsQuery["normalisation"]> | null {
  const { references } = readReferences(search.references);
  const { normalise } = search;
  if (normalise === undefined) return null;
  if (normalise === "min_max") return { kind: "min_max", table: null, references: {} };
  if (normalise === "given")
    return Object.keys(references).length > 0 ? { kind: "given", table: null, references } : null;
  return { kind: "table", table: normalise, references };
}
