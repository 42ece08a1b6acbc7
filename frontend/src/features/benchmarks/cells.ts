/** The table of groups and environments: which seeds have a score, and which are missing. */
import type { GroupStatistics, Run, StatisticsResult } from "@/api/types";

type Cells = GroupStatistics["environments"][number];

export interface Cell {
  environment: string;
  /** Scores of the group in the environment; `null` if there is none yet. */
  scores: Cells | null;
  /** Runs with and without a score, the oldest first. */
  runs: readonly Run[];
  /** Seeds that other cells have and this one lacks. */
  missing: readonly number[];
}

export interface CellRow {
  name: string;
  /** The runs of the group in any environment. */
  runs: readonly Run[];
  cells: readonly Cell[];
}

export interface CellTable {
  environments: readonly string[];
  /** All seeds that any run has, ascending. */
  seeds: readonly number[];
  rows: readonly CellRow[];
}

const NONE = "(none)";

/** The name of a run's group, as the server writes it. */
export function nameGroup(run: Pick<Run, "values">, by: readonly string[]): string {
  return by
    .map((path) => {
      const value = run.values?.[path] ?? null;
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
  const rows = [...groups].map(([name, members]) => ({
    name,
    runs: members,
    cells: environments.map((environment) => {
      const here = members.filter((run) => readEnvironment(run) === environment);
      const known = new Set(here.map((run) => run.seed));
      const found = statistics.get(name)?.environments;
      return {
        environment,
        scores: found?.find((one) => one.environment === environment) ?? null,
        runs: here,
        missing: seeds.filter((seed) => !known.has(seed)),
      };
    }),
  }));
  return { environments, seeds, rows: rows.sort((a, b) => a.name.localeCompare(b.name)) };
}

function readEnvironment(run: Run): string {
  const found = run.values?.env;
  return typeof found === "string" && found !== "" ? found : NONE;
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
