/** The table of groups and environments: which seeds have a score, and which are missing. */
import type { GroupStatistics, Run, StatisticsResult } from "@/api/types";
import { nameExperiments, shortenExperimentIds } from "@/lib/experimentNames";

type Cells = GroupStatistics["environments"][number];

export interface Cell {
  environment: string;
  /** Scores of the group in the environment; `null` if there is none yet. */
  scores: Cells | null;
  /** Runs with and without a score, the oldest first. */
  runs: readonly Run[];
  /** Seeds that other cells have and this one lacks; none where it can have no run. */
  missing: readonly number[];
}

export interface CellRow {
  name: string;
  /** The name with short names of experiments. */
  label: string;
  /** The runs of the group in any environment. */
  runs: readonly Run[];
  cells: readonly Cell[];
}

export interface CellTable {
  environments: readonly string[];
  /** All seeds that any run has, ascending. */
  seeds: readonly number[];
  rows: readonly CellRow[];
  /** Short names of the experiments by ID, where they are part of the groups' names. */
  names: ReadonlyMap<string, string>;
  /** Whether each group has one environment, since an experiment or the environment defines it. */
  isOfOneEnvironment: boolean;
}

const FIXES_ENVIRONMENT = ["experiment", "env", "env.id"];
const NONE = "(none)";
const MOST_FIELDS = 3;

/** The name of a run's group, as the server writes it. */
export function nameGroup(
  run: Pick<Run, "experiment_id" | "seed" | "values">,
  by: readonly string[],
): string {
  const own: Record<string, unknown> = { experiment: run.experiment_id, seed: run.seed };
  return by
    .map((path) => {
      const value = own[path] ?? run.values?.[path] ?? null;
      return `${path}=${typeof value === "string" ? value : JSON.stringify(value)}`;
    })
    .join(", ");
}

/**
 * Places runs in the cells of their groups and environments.
 *
 * @param runs the runs, with the values of `env` and of the fields in `by`
 * @param result statistics of the same runs, grouped by `by`
 */
export function buildCells(
  runs: readonly Run[],
  result: StatisticsResult,
  by: readonly string[],
): CellTable {
  const ofRun = new Map(
    result.groups.flatMap((group) => group.run_ids.map((id) => [id, group.name] as const)),
  );
  const groups = new Map<string, Run[]>(result.groups.map((group) => [group.name, []]));
  for (const run of runs) {
    const name = ofRun.get(run.id) ?? nameGroup(run, by);
    groups.set(name, [...(groups.get(name) ?? []), run]);
  }
  const statistics = new Map(result.groups.map((group) => [group.name, group]));
  const environments = [...new Set([...runs.map(readEnvironment), ...result.environments])].sort();
  const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
  const names = by.includes("experiment")
    ? shortenExperimentIds([...new Set(runs.map((run) => run.experiment_id))])
    : new Map<string, string>();
  const isOfOneEnvironment = by.some((path) => FIXES_ENVIRONMENT.includes(path));
  const rows = [...groups].map(([name, members]) => ({
    name,
    label: nameExperiments(name, names),
    runs: members,
    cells: environments.map((environment) => {
      const here = members.filter((run) => readEnvironment(run) === environment);
      const known = new Set(here.map((run) => run.seed));
      const found = statistics.get(name)?.environments;
      return {
        environment,
        scores: found?.find((one) => one.environment === environment) ?? null,
        runs: here,
        missing:
          isOfOneEnvironment && here.length === 0 ? [] : seeds.filter((seed) => !known.has(seed)),
      };
    }),
  }));
  const findPlace = (row: (typeof rows)[number]) =>
    isOfOneEnvironment ? row.cells.findIndex((cell) => cell.runs.length > 0) : 0;
  rows.sort((a, b) => findPlace(a) - findPlace(b) || a.name.localeCompare(b.name));
  return { environments, seeds, rows, names, isOfOneEnvironment };
}

function readEnvironment(run: Run): string {
  const found = run.values?.env;
  return typeof found === "string" && found !== "" ? found : NONE;
}

/** Says how many experiments a cell pools and in what they differ; `null` for one experiment. */
export function describePooling({ scores }: Pick<Cell, "scores">): string | null {
  if (scores === null || scores.experiments < 2) return null;
  const fields = scores.differing_fields;
  const more = fields.length > MOST_FIELDS ? ` and ${fields.length - MOST_FIELDS} more` : "";
  const shown = fields.slice(0, MOST_FIELDS).join(", ") || "equal definitions";
  return `${scores.experiments} experiments: ${shown}${more}`;
}

/**
 * The search parameters of the form that launches what a cell lacks; `null` if there is nothing to
 * launch.
 *
 * A cell with runs gets its missing seeds. An empty cell gets the group's newest experiment in
 * the environment of another group's newest experiment there.
 */
export function launchSearch(
  table: CellTable,
  row: CellRow,
  cell: Cell,
): { from: string; env?: string; seeds: string } | null {
  const seeds = cell.missing.join(",");
  if (seeds === "") return null;
  const own = cell.runs.at(-1);
  if (own !== undefined) return { from: own.experiment_id, seeds };
  const from = row.runs.at(-1)?.experiment_id;
  const env = table.rows
    .flatMap((other) => other.cells)
    .find((other) => other.environment === cell.environment && other.runs.length > 0)
    ?.runs.at(-1)?.experiment_id;
  return from === undefined || env === undefined ? null : { from, env, seeds };
}
