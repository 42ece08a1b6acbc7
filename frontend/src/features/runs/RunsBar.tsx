import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { runKeysQuery } from "@/api/runQueries";
import type { RunGroup } from "@/api/types";
import { completeFilter } from "@/lib/filterTerms";
import { formatPlural } from "@/lib/format";
import { FilterChips, FilterInput } from "@/ui/FilterInput";
import { StateCounts } from "@/ui/StateBadge";
import { ColumnPicker } from "./ColumnPicker";
import { GroupPicker } from "./GroupPicker";
import classes from "./Runs.module.css";
import type { Pane, RunsState } from "./search";

const EXAMPLE = "agent:dqn env:~CartPole evaluation/mean.best>400 state:running,queued";
const PANES = [
  { value: "table", label: "Table" },
  { value: "both", label: "Both" },
  { value: "board", label: "Board" },
];

interface RunsBarProps {
  project: string;
  state: RunsState;
  /** The server's message if the filter cannot be read. */
  fault: string | undefined;
  total: Pick<RunGroup, "runs" | "states"> | undefined;
  change(part: Partial<RunsState>): void;
  onColumns(columns: readonly string[]): void;
}

/** What the page shows: filter as text and as chips, groups, columns, table and board. */
export function RunsBar({ project, state, fault, total, change, onColumns }: RunsBarProps) {
  const keys = useQuery(runKeysQuery(project)).data;
  const complete = useCallback(
    (filter: string) => (keys === undefined ? [] : completeFilter(filter, keys)),
    [keys],
  );
  const setFilter = (filter: string | undefined) => change({ filter: filter ?? "" });
  return (
    <div className={classes.bar}>
      <div className={classes.controls}>
        <FilterInput
          value={state.filter || undefined}
          onChange={setFilter}
          fault={fault}
          example={EXAMPLE}
          complete={complete}
        />
        <GroupPicker
          project={project}
          groupBy={state.groupBy}
          onChange={(groupBy) => change({ groupBy })}
        />
        <ColumnPicker project={project} columns={state.columns} onChange={onColumns} />
        <SegmentedControl
          aria-label="Show"
          value={state.show}
          onChange={(show) => change({ show: show as Pane })}
          data={PANES}
        />
      </div>
      <div className={classes.terms}>
        <FilterChips filter={state.filter} onChange={setFilter} />
        {total !== undefined && fault === undefined && (
          <span className={classes.total}>
            {formatPlural(total.runs, "run")}
            <StateCounts counts={total.states} />
          </span>
        )}
      </div>
    </div>
  );
}
