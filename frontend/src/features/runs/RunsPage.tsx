import { SegmentedControl } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { type ApiError, findFaultAt } from "@/api/client";
import { runsQuery } from "@/api/runQueries";
import type { Run } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { FILTER_POINTER, FilterInput } from "@/ui/FilterInput";
import { Page } from "@/ui/Page";
import { BelowList } from "@/ui/ShowMore";
import { useScheme } from "@/ui/scheme";
import { Board } from "./Board";
import { listAskedKeys } from "./columnKeys";
import { Panes } from "./Panes";
import classes from "./Runs.module.css";
import { LoadingTable, RunsTable } from "./RunsTable";
import { type Pane, readRunsSearch } from "./search";
import { useLiveRuns } from "./useLiveRuns";
import { useRunColumns } from "./useRunColumns";
import { useRunsState } from "./useRunsState";

const route = getRouteApi("/inside/p/$project/runs");
const EXAMPLE = "agent:dqn env:~CartPole evaluation/mean.best>400 state:running,queued";
const SUBMIT = "palestra submit examples/cartpole-dqn.yaml --seeds 0-2";

/** The runs of a project: a table, and a board of their charts. */
export function RunsPage() {
  const { project } = route.useParams();
  const page = useRunsState(project, readRunsSearch(route.useSearch()));
  const { state, change } = page;
  const [hovered, setHovered] = useState<string | null>(null);
  useLiveRuns(project);
  const asked = useMemo(() => listAskedKeys(state.columns), [state.columns]);
  const query = useInfiniteQuery(
    runsQuery({ project, filter: state.filter, sort: state.sort, columns: asked }),
  );
  const problem = findQueryError(query);
  const fault = findFaultAt(problem, FILTER_POINTER);
  const runs = useMemo(() => query.data?.pages.flatMap((one) => one.items) ?? [], [query.data]);
  const color = useRunColor(runs);
  const columns = useRunColumns(state, color);
  const actions = {
    order: { id: state.sort.replace(/^-/, ""), isDescending: state.sort.startsWith("-") },
    onSort: page.sortBy,
    onResize: page.resize,
    onPin: page.pin,
    onHide: page.hide,
    onMove: page.move,
  };
  return (
    <Page
      title="Runs"
      actions={
        <SegmentedControl
          aria-label="Show"
          value={state.show}
          onChange={(show) => change({ show: show === "both" ? undefined : (show as Pane) })}
          data={[
            { value: "table", label: "Table" },
            { value: "both", label: "Both" },
            { value: "board", label: "Board" },
          ]}
        />
      }
    >
      <div className={classes.bar}>
        <FilterInput
          value={state.filter || undefined}
          onChange={(filter) => change({ filter })}
          fault={fault}
          example={EXAMPLE}
        />
      </div>
      <Panes
        show={state.show}
        split={state.split}
        onSplit={(split) => change({ split: String(split) })}
        table={
          fault !== undefined ? (
            <EmptyState title="The filter cannot be read">
              Correct it where the message points, or remove it to see all runs.
            </EmptyState>
          ) : problem !== null && query.data === undefined ? (
            <Failure error={problem as ApiError} retry={() => void query.refetch()} />
          ) : query.isPending ? (
            <LoadingTable />
          ) : runs.length === 0 ? (
            <Nothing
              isFiltered={state.filter !== ""}
              onClear={() => change({ filter: undefined })}
            />
          ) : (
            <RunsTable
              runs={runs}
              columns={columns}
              actions={actions}
              query={query}
              hovered={hovered}
              onHover={setHovered}
            />
          )
        }
        board={
          <Board
            runs={runs}
            groupBy={state.groupBy}
            filter={state.filter}
            project={project}
            colour={color}
            hovered={hovered}
            onHover={setHovered}
          />
        }
      />
    </Page>
  );
}

/** Returns the colour of each run: that of its experiment. */
function useRunColor(runs: readonly Run[]): (runId: string) => string {
  const scheme = useScheme();
  const groups = useMemo(() => new Map(runs.map((run) => [run.id, run.experiment_id])), [runs]);
  return useCallback(
    (runId) => chooseGroupColor(groups.get(runId) ?? runId, scheme),
    [groups, scheme],
  );
}

function Nothing({ isFiltered, onClear }: { isFiltered: boolean; onClear(): void }) {
  if (isFiltered)
    return (
      <>
        <EmptyState title="No run matches">
          Remove a part of the filter: all of its terms must hold. Several values of a term are
          joined by commas, as in <code>state:running,queued</code>.
        </EmptyState>
        <BelowList onClick={onClear}>Clear the filter</BelowList>
      </>
    );
  return (
    <EmptyState title="No runs yet" command={`${SUBMIT} --server ${window.location.origin}`}>
      Submit an experiment with some seeds: each seed is a run, and its row follows the training.
    </EmptyState>
  );
}
