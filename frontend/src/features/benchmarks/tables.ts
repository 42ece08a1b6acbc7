/** The numbers of figures as tables for files: each is one that the server answered. */
import type { StatisticsResult } from "@/api/types";
import type { Table } from "@/lib/csv";
import { nameExperiments } from "@/lib/experimentNames";
import { formatScore, formatSpread, formatValue } from "@/lib/format";
import { type Cell, type CellTable, describePooling } from "./cells";

export const AGGREGATES = [
  ["mean", "Mean"],
  ["median", "Median"],
  ["iqm", "IQM"],
  ["optimality_gap", "Optimality gap"],
] as const;

type Estimate = { value: number; low: number | null; high: number | null } | null | undefined;

const ends = (one: Estimate) => [one?.value ?? null, one?.low ?? null, one?.high ?? null];

export function aggregateTable(result: StatisticsResult): Table {
  return {
    header: ["group", "runs", "seeds", "statistic", "value", "low", "high"],
    rows: result.groups.flatMap((group) =>
      AGGREGATES.filter(([name]) => group.aggregates[name] !== undefined).map(([name]) => [
        group.name,
        group.scores.length,
        group.seeds,
        name,
        ...ends(group.aggregates[name]),
      ]),
    ),
  };
}

/** The aggregates as papers print them: a row for each group. */
export function printAggregates(
  result: StatisticsResult,
  names: ReadonlyMap<string, string>,
): Table {
  const shown = AGGREGATES.filter(([name]) =>
    result.groups.some((group) => group.aggregates[name] !== undefined),
  );
  return {
    header: ["group", "runs", ...shown.map(([, heading]) => heading)],
    rows: result.groups.map((group) => [
      nameExperiments(group.name, names),
      group.scores.length,
      ...shown.map(([name]) => describeEstimate(group.aggregates[name])),
    ]),
  };
}

/** The scores per environment as papers print them: a column for each environment. */
export function printCells(table: CellTable): Table {
  return {
    header: ["group", ...table.environments],
    rows: table.rows.map((row) => [
      row.label,
      ...row.cells.map((cell) => {
        const score = printScore(cell);
        const pooling = describePooling(cell);
        return score === null || pooling === null ? score : `${score} (${pooling})`;
      }),
    ]),
  };
}

/** Mean and standard deviation of a cell's scores; `null` without a score. */
export function printScore({ scores }: Pick<Cell, "scores">): string | null {
  if (scores === null) return null;
  return scores.stdev === null
    ? formatValue(scores.mean)
    : `${formatScore(scores.mean, scores.stdev)} ± ${formatSpread(scores.stdev)}`;
}

/** An estimate with its interval, in the digits that the interval allows. */
export function describeEstimate(one: Estimate): string | null {
  if (one === null || one === undefined) return null;
  if (one.low === null || one.high === null) return formatValue(one.value);
  const width = (one.high - one.low) / 2;
  const [value, low, high] = [one.value, one.low, one.high].map((x) => formatScore(x, width));
  return `${value} [${low}, ${high}]`;
}

export function profileTable(result: StatisticsResult): Table {
  return {
    header: ["group", "threshold", "share", "low", "high"],
    rows: result.groups.flatMap((group) =>
      result.thresholds.map((threshold, i) => [
        group.name,
        threshold,
        group.profile?.share[i] ?? null,
        group.profile?.low?.[i] ?? null,
        group.profile?.high?.[i] ?? null,
      ]),
    ),
  };
}

export function improvementTable(result: StatisticsResult): Table {
  return {
    header: ["first", "second", "environments", "probability", "low", "high"],
    rows: result.pairs.map((pair) => [
      pair.first,
      pair.second,
      pair.environments.join(" "),
      ...ends(pair.improvement),
    ]),
  };
}

export function efficiencyTable(result: StatisticsResult): Table {
  return {
    header: ["group", "env_step", "iqm", "low", "high", "n"],
    rows: result.groups.flatMap((group) =>
      result.grid.map((at, i) => [
        group.name,
        at,
        group.efficiency?.iqm[i] ?? null,
        group.efficiency?.low[i] ?? null,
        group.efficiency?.high[i] ?? null,
        group.efficiency?.n[i] ?? null,
      ]),
    ),
  };
}

export function cellTable(table: CellTable): Table {
  return {
    header: [
      ...["group", "environment", "runs", "n", "mean", "stdev", "iqm", "low", "high"],
      ...["experiments", "differing_fields"],
    ],
    rows: table.rows.flatMap((row) =>
      row.cells.map((cell) => [
        row.name,
        cell.environment,
        cell.runs.length,
        cell.scores?.n ?? 0,
        cell.scores?.mean ?? null,
        cell.scores?.stdev ?? null,
        ...ends(cell.scores?.iqm),
        cell.scores?.experiments ?? 0,
        cell.scores?.differing_fields.join(" ") ?? "",
      ]),
    ),
  };
}
