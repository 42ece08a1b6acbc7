/** The members of a comparison as rows, colours and tables. */
import type { ComparedField, ComparisonResult, SeriesResult } from "@/api/types";
import type { FigureLine } from "@/charts/LineFigure";
import { chooseCycleColor, type Scheme } from "@/lib/color";
import type { Table } from "@/lib/csv";
import type { Json } from "@/lib/jsonDiff";

const HUES = 8;
const DASHES = [undefined, "6 3", "2 3", "8 3 2 3"];

export interface Member {
  name: string;
  color: string;
  dash: string | undefined;
}

/** Names and looks of the members: colours repeat after eight, with dashes. */
export function listMembers(result: ComparisonResult, scheme: Scheme): Member[] {
  return result.members.map(({ name }, index) => ({
    name,
    color: chooseCycleColor(index, scheme),
    dash: DASHES[Math.floor(index / HUES) % DASHES.length],
  }));
}

/** A value of a definition in a cell. */
export function writeValue(value: Json): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The values of a field in one member. */
export function writeValues(values: readonly unknown[]): string {
  return values.length === 0 ? "–" : values.map((one) => writeValue(one as Json)).join(", ");
}

/** A member in one of the environments of its runs. */
export interface MemberScores {
  /** Position of the member. */
  index: number;
  /** As the definitions of its runs name it. */
  environment: string;
  /** Number of the member's runs in the environment. */
  runs: number;
  /** `null` while none of these runs has a score. */
  scores: ComparisonResult["members"][number]["environments"][number] | null;
}

/** Each member in each environment of its runs, with and without scores. */
export function listScores(result: ComparisonResult): MemberScores[] {
  return result.members.flatMap((member, index) => {
    const counts = new Map<string, number>();
    for (const run of result.runs)
      if (run.member === index) counts.set(run.environment, (counts.get(run.environment) ?? 0) + 1);
    return [...counts].map(([environment, runs]) => ({
      index,
      environment,
      runs,
      scores: member.environments.find((one) => one.environment === environment) ?? null,
    }));
  });
}

export function scoreTable(result: ComparisonResult): Table {
  return {
    header: ["member", "runs", "environment", "n", "mean", "stdev", "iqm", "low", "high"],
    rows: listScores(result).map(({ index, environment, runs, scores }) => [
      result.members[index]?.name ?? "",
      runs,
      environment,
      scores?.n ?? 0,
      scores?.mean ?? null,
      scores?.stdev ?? null,
      scores?.iqm.value ?? null,
      scores?.iqm.low ?? null,
      scores?.iqm.high ?? null,
    ]),
  };
}

export function fieldTable(result: ComparisonResult, fields: readonly ComparedField[]): Table {
  return {
    header: ["field", ...result.members.map((member) => member.name)],
    rows: fields.map((field) => [field.path, ...field.values.map(writeValues)]),
  };
}

export function importanceTable(result: ComparisonResult): Table {
  return {
    header: ["environment", "runs", "parameter", "values", "rank_correlation", "explained", "p"],
    rows: result.importance.flatMap((one) =>
      one.parameters.map((parameter) => [
        one.environment,
        one.runs,
        parameter.path,
        parameter.levels,
        parameter.correlation,
        parameter.explained,
        parameter.p_value,
      ]),
    ),
  };
}

/** Runs with their differing parameters and scores. */
export function runTable(result: ComparisonResult): Table {
  return {
    header: ["run", "member", "environment", "seed", ...result.parameters, "score"],
    rows: result.runs.map((run) => [
      run.run_id,
      result.members[run.member]?.name ?? "",
      run.environment,
      run.seed,
      ...run.values.map((value) =>
        typeof value === "number" ? value : value === null ? null : writeValue(value as Json),
      ),
      run.score,
    ]),
  };
}

/** The curves of the members, in their order; members without the series have none. */
export function buildLines(
  result: ComparisonResult,
  curves: SeriesResult,
  members: readonly Member[],
): FigureLine[] {
  return result.members.flatMap((member, index): FigureLine[] => {
    const { name, color, dash } = members[index] as Member;
    const look = { name, color, ...(dash && { dash }) };
    const group = curves.groups.find((one) => one.name === member.name);
    if (group !== undefined) return [{ ...look, y: group.mean, low: group.low, high: group.high }];
    const own = curves.series.find((one) => one.run_id === member.run_ids[0]);
    const y = own?.mean ?? [];
    return y.some((value) => value !== null)
      ? [{ ...look, y: y.map((value) => (typeof value === "number" ? value : null)) }]
      : [];
  });
}

/** The grid without the positions at which no line has a value. */
export function dropEmpty(
  grid: readonly number[],
  lines: readonly FigureLine[],
): { grid: number[]; lines: FigureLine[] } {
  const kept = [...grid.keys()].filter((i) => lines.some((line) => typeof line.y[i] === "number"));
  const pick = (column: readonly (number | null)[] | null | undefined) =>
    column ? kept.map((i) => column[i] ?? null) : null;
  return {
    grid: kept.map((i) => grid[i] as number),
    lines: lines.map((line) => ({
      ...line,
      y: pick(line.y) ?? [],
      low: pick(line.low),
      high: pick(line.high),
    })),
  };
}

export function curveTable(
  grid: readonly number[],
  lines: readonly FigureLine[],
  x: string,
): Table {
  return {
    header: ["member", x, "mean", "low", "high"],
    rows: lines.flatMap((line) =>
      grid.flatMap((at, i) =>
        typeof line.y[i] === "number"
          ? [[line.name, at, line.y[i], line.low?.[i] ?? null, line.high?.[i] ?? null]]
          : [],
      ),
    ),
  };
}
