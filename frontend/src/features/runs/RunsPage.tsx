import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { usePermission } from "@/api/access";
import { type ApiError, findFaultAt } from "@/api/client";
import { runsQuery, runTotalQuery } from "@/api/runQueries";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { FILTER_POINTER } from "@/ui/FilterInput";
import { Page } from "@/ui/Page";
import { Board } from "./Board";
import { listAskedKeys } from "./columnKeys";
import { chooseMetric } from "./groupKeys";
import { NoRuns } from "./NoRuns";
import { Panes } from "./Panes";
import { RunsBar } from "./RunsBar";
import { RunsBulkBar } from "./RunsBulkBar";
import { LoadingTable, RunsTable } from "./RunsTable";
import { listRunItems } from "./runItems";
import { readRunsSearch } from "./search";
import { useHeaderActions } from "./useHeaderActions";
import { useLiveRuns } from "./useLiveRuns";
import { useRunColor } from "./useRunColor";
import { useRunColumns } from "./useRunColumns";
import { useRunGroups } from "./useRunGroups";
import { useRunSelection } from "./useRunSelection";
import { useRunsState } from "./useRunsState";
import { useSavedView } from "./useSavedView";
import { ViewProblems } from "./ViewProblems";
import { ViewsMenu } from "./ViewsMenu";
import { isChanged, readBoardSettings, writeView } from "./viewState";

const route = getRouteApi("/inside/p/$project/runs");

/** The runs of a project: a table, and a board of their charts. */
export function RunsPage() {
  const { project } = route.useParams();
  const search = readRunsSearch(route.useSearch());
  const saved = useSavedView(project, search);
  const page = useRunsState(project, search, saved.base);
  const { state, change } = page;
  const [hovered, setHovered] = useState<string | null>(null);
  useLiveRuns(project);
  const enabled = !saved.isPending;
  const asked = useMemo(
    () => listAskedKeys([...new Set(["name", ...state.columns, ...state.groupBy])]),
    [state.columns, state.groupBy],
  );
  const { filter, sort, groupBy } = state;
  const list = useInfiniteQuery({
    ...runsQuery({ project, filter, sort, columns: asked }),
    enabled,
  });
  const total = useQuery({ ...runTotalQuery(project, filter), enabled });
  const runs = useMemo(() => list.data?.pages.flatMap((one) => one.items) ?? [], [list.data]);
  const memberKeys = useMemo(
    () => [...new Set([...asked, ...listAskedKeys([chooseMetric(sort)])])],
    [asked, sort],
  );
  const groups = useRunGroups({ project, state, columns: memberKeys });
  const isGrouped = groupBy.length > 0;
  const query = isGrouped ? groups.query : list;
  const runItems = useMemo(() => listRunItems(runs), [runs]);
  const items = isGrouped ? groups.items : runItems;
  const problem = findQueryError(list) ?? (isGrouped ? findQueryError(groups.query) : null);
  const fault = findFaultAt(problem, FILTER_POINTER);
  const color = useRunColor(runs, items, groupBy);
  const columns = useRunColumns(state, color, groups.toggle);
  const selection = useRunSelection(items, filter);
  const header = useHeaderActions(page);
  const right = usePermission("run.control_own", project);
  return (
    <Page
      title="Runs"
      actions={
        <ViewsMenu
          project={project}
          view={saved.view}
          isChanged={isChanged(search, saved.view?.usable_state.board)}
          state={() => writeView(state, readBoardSettings(search))}
          onOpen={(id) => page.navigateTo(() => (id === null ? {} : { view: id }))}
        />
      }
    >
      <ViewProblems view={saved.view} problem={saved.problem as ApiError | null} />
      <RunsBar
        project={project}
        state={state}
        fault={fault}
        total={total.data}
        change={change}
        onColumns={page.showColumns}
      />
      {selection.ids.size > 0 && (
        <RunsBulkBar
          project={project}
          runs={[...selection.ids]}
          isAll={selection.isAll}
          total={total.data?.runs ?? null}
          selection={selection.isAll ? { filter } : { runs: [...selection.ids] }}
          reason={right.reason}
          onAll={selection.takeAll}
          onClear={selection.clear}
        />
      )}
      <Panes
        show={state.show}
        split={state.split}
        onSplit={(split) => change({ split })}
        table={
          fault !== undefined ? (
            <EmptyState title="The filter cannot be read">
              Correct it where the message points, or remove it to see all runs.
            </EmptyState>
          ) : problem !== null && query.data === undefined ? (
            <Failure error={problem as ApiError} retry={() => void query.refetch()} />
          ) : query.isPending ? (
            <LoadingTable />
          ) : items.length === 0 ? (
            <NoRuns
              project={project}
              isFiltered={filter !== ""}
              onClear={() => change({ filter: "" })}
            />
          ) : (
            <RunsTable
              items={items}
              columns={columns}
              actions={header}
              query={query}
              selection={selection.grid}
              total={isGrouped ? undefined : total.data?.runs}
              hovered={hovered}
              onHover={setHovered}
              onToggle={groups.toggle}
            />
          )
        }
        board={
          <Board
            runs={runs}
            groupBy={[...groupBy]}
            filter={filter}
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
