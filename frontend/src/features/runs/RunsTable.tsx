import { Skeleton } from "@mantine/core";
import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { DataGrid, type GridColumn, type GridSelection } from "@/ui/DataGrid";
import type { HeaderActions } from "@/ui/GridHeader";
import classes from "./Runs.module.css";
import type { RunItem } from "./runItems";

interface RunsTableProps {
  items: readonly RunItem[];
  columns: readonly GridColumn<RunItem>[];
  actions: HeaderActions;
  query: Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;
  selection: GridSelection<RunItem>;
  /** Number of all rows, where it is known. */
  total: number | undefined;
  hovered: string | null;
  onHover(runId: string | null): void;
  onToggle(id: string): void;
}

const getId = (item: RunItem) => item.id;
const chooseClass = (item: RunItem) => (item.kind === "group" ? classes.groupRow : undefined);

/** Runs and groups as rows; further ones are loaded as the end comes near. */
export function RunsTable(props: RunsTableProps) {
  const { query, onHover } = props;
  const navigate = useNavigate();
  const open = (item: RunItem) => {
    if (item.kind === "group") props.onToggle(item.id);
    if (item.kind === "run")
      void navigate({
        to: "/p/$project/runs/$runId",
        params: { project: item.run.project, runId: item.run.id },
      });
  };
  return (
    <DataGrid
      label="Runs"
      rows={props.items}
      columns={props.columns}
      rowId={getId}
      rowClass={chooseClass}
      onOpen={open}
      hovered={props.hovered}
      onHover={(id) => onHover(id === null || id.startsWith("group ") ? null : id)}
      selection={props.selection}
      total={props.total}
      onEnd={() => {
        if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
      }}
      footer={query.isFetchingNextPage && <p className={classes.more}>Loading more…</p>}
      {...props.actions}
    />
  );
}

/** Stands in the place of the table until its first rows are there. */
export function LoadingTable() {
  return (
    <div className={classes.loading} aria-busy="true">
      {Array.from({ length: 10 }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
        <Skeleton key={i} height={14} radius="sm" width={`${92 - (i % 5) * 7}%`} />
      ))}
    </div>
  );
}
