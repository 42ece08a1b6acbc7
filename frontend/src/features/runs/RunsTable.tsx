import { Skeleton } from "@mantine/core";
import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { Run } from "@/api/types";
import { DataGrid, type GridColumn } from "@/ui/DataGrid";
import type { HeaderActions } from "@/ui/GridHeader";
import classes from "./Runs.module.css";

interface RunsTableProps {
  runs: readonly Run[];
  columns: readonly GridColumn<Run>[];
  actions: HeaderActions;
  query: Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;
  hovered: string | null;
  onHover(runId: string | null): void;
}

const getId = (run: Run) => run.id;

/** The runs as rows; further ones are loaded as the end comes near. */
export function RunsTable({ runs, columns, actions, query, hovered, onHover }: RunsTableProps) {
  const navigate = useNavigate();
  const open = (run: Run) =>
    void navigate({
      to: "/p/$project/runs/$runId",
      params: { project: run.project, runId: run.id },
    });
  return (
    <DataGrid
      label="Runs"
      rows={runs}
      columns={columns}
      rowId={getId}
      onOpen={open}
      hovered={hovered}
      onHover={onHover}
      onEnd={() => {
        if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
      }}
      footer={query.isFetchingNextPage && <p className={classes.more}>Loading more runs…</p>}
      {...actions}
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
