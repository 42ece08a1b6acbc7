import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { STATISTICS_PATH } from "@/api/statisticsQueries";
import type { StatisticsQuery } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { Figure } from "@/ui/Figure";
import figure from "@/ui/Figure.module.css";
import { IconPlus } from "@/ui/icons";
import classes from "./Benchmarks.module.css";
import { type Cell, type CellRow, type CellTable, describePooling, launchSearch } from "./cells";
import { cellTable, printCells, printScore } from "./tables";

interface CellsProps {
  project: string;
  table: CellTable;
  query: StatisticsQuery;
  /** Why the viewer may not launch; `null` if the viewer may. */
  refused: string | null;
  notes: readonly string[];
}

/** Groups and environments with the number of scores and their mean; missing cells launch. */
export function Cells({ project, table, query, refused, notes }: CellsProps) {
  const data = useMemo(() => cellTable(table), [table]);
  return (
    <Figure
      table
      title="Scores by environment"
      name="scores"
      data={data}
      printed={printCells(table)}
      query={{ path: STATISTICS_PATH, body: query }}
      caption={[
        "Mean ± standard deviation of the raw scores, and n, the number of runs that have one. The " +
          "file has the IQM with its 95 % interval, too.",
        ...(table.isOfOneEnvironment && table.environments.length > 1
          ? ["Each row has one environment. Group by “agent” for a row for each agent."]
          : []),
        ...notes,
      ]}
    >
      <table className={figure.grid} aria-label="Scores by group and environment">
        <thead>
          <tr>
            <th scope="col">Group</th>
            {table.environments.map((environment) => (
              <th key={environment} scope="col" data-number>
                {environment}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.name}>
              <th scope="row" title={row.name}>
                {row.label}
              </th>
              {row.cells.map((cell) => (
                <td key={cell.environment} data-number>
                  <CellContent {...{ project, table, row, cell, refused }} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Figure>
  );
}

interface CellProps {
  project: string;
  table: CellTable;
  row: CellRow;
  cell: Cell;
  refused: string | null;
}

function CellContent({ project, table, row, cell, refused }: CellProps) {
  const { scores, runs } = cell;
  const launch = refused === null ? launchSearch(table, row, cell) : null;
  const pooling = describePooling(cell);
  if (table.isOfOneEnvironment && runs.length === 0) return <span className="faint">–</span>;
  return (
    <span className={classes.cell}>
      {scores !== null && <span>{printScore(cell)}</span>}
      {scores === null && runs.length > 0 && <span className="faint">no evaluation yet</span>}
      <small>
        {runs.length === 0
          ? "no run"
          : scores !== null && scores.n === runs.length
            ? `n = ${scores.n}`
            : `n = ${scores?.n ?? 0} of ${formatPlural(runs.length, "run")}`}
      </small>
      {pooling !== null && (
        <small className={classes.pooling} title={scores?.differing_fields.join(", ")}>
          {pooling}
        </small>
      )}
      {launch !== null && (
        <Link
          to="/p/$project/new"
          params={{ project }}
          search={launch}
          className={classes.launch}
          title={`Opens the form for ${row.label} in ${cell.environment}, seeds ${launch.seeds}`}
          aria-label={`Launch ${row.label} in ${cell.environment}`}
        >
          <IconPlus size={12} />
          {runs.length === 0 ? "launch" : formatPlural(cell.missing.length, "seed")}
        </Link>
      )}
    </span>
  );
}
