/** Hyperparameters as axes of charts: numbers, or categories where values have no order. */
import type { ComparisonResult } from "@/api/types";
import type { Json } from "@/lib/jsonDiff";
import { writeValue } from "./members";

export interface ParameterAxis {
  path: string;
  /** Names of values that have no order. */
  categories: string[] | undefined;
  /** Whether the numbers span so many powers of ten that they are drawn by their logarithm. */
  log: boolean;
  /** The place of each run; `null` where the definition lacks the parameter. */
  places: (number | null)[];
}

const LOG_SPAN = 50;

/** The axis of a parameter over the runs of a comparison. */
export function buildAxis(result: ComparisonResult, path: string): ParameterAxis {
  const column = result.parameters.indexOf(path);
  const values = result.runs.map((run) => run.values[column] ?? null);
  const known = values.filter((value) => value !== null);
  if (known.length > 0 && known.every((value) => typeof value === "number")) {
    const numbers = known as number[];
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const log = low > 0 && high / low >= LOG_SPAN;
    return { path, categories: undefined, log, places: values as (number | null)[] };
  }
  const texts = values.map((value) => (value === null ? null : writeValue(value as Json)));
  const categories = [...new Set(texts)].filter((one) => one !== null).sort();
  const places = texts.map((text) => (text === null ? null : categories.indexOf(text)));
  return { path, categories, log: false, places };
}

type Importance = ComparisonResult["importance"][number]["parameters"][number];

const NAMED = 3;

/**
 * One parameter of each split of the runs, the agent's name where it is among them; the others are
 * in its `same_split`.
 */
export function collapseSplits(parameters: readonly Importance[]): Importance[] {
  const seen = new Set<string>();
  return parameters.flatMap((first) => {
    if (seen.has(first.path)) return [];
    const alike = [first.path, ...first.same_split];
    for (const path of alike) seen.add(path);
    const chosen =
      parameters.find((one) => one.path === "agent.name" && alike.includes(one.path)) ?? first;
    return [chosen];
  });
}

/** Some of the parameters, and how many more there are. */
export function describeSplit(paths: readonly string[]): string {
  const more = paths.length - NAMED;
  const shown = paths.slice(0, NAMED).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/**
 * The parameters whose values differ in an environment, those of the highest importance first; all
 * of the comparison if none differs there.
 */
export function rankPaths(result: ComparisonResult, environment: string): string[] {
  const of = result.importance.find((one) => one.environment === environment);
  if (of === undefined) {
    const { runs } = restrict(result, environment);
    const varying = result.parameters.filter(
      (_, column) => new Set(runs.map((run) => JSON.stringify(run.values[column]))).size > 1,
    );
    return varying.length > 0 ? varying : [...result.parameters];
  }
  return collapseSplits(of.parameters).map(({ path }) => path);
}

/** The comparison with the runs of one environment alone. */
export function restrict(result: ComparisonResult, environment: string): ComparisonResult {
  return { ...result, runs: result.runs.filter((run) => run.environment === environment) };
}
