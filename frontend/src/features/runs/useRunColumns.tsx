import { useMemo } from "react";
import type { Run } from "@/api/types";
import type { GridColumn } from "@/ui/DataGrid";
import { describeKey, isSortable, nameKey, nameStatistic } from "./columnKeys";
import classes from "./Runs.module.css";
import { showCell } from "./runCells";
import type { RunsState } from "./search";

/** The columns of the table in their order: the pinned ones first. */
export function orderColumns(columns: readonly string[], pinned: readonly string[]): string[] {
  return [
    ...columns.filter((key) => pinned.includes(key)),
    ...columns.filter((key) => !pinned.includes(key)),
  ];
}

/** Returns the columns of runs, in the order of the table. */
export function useRunColumns(
  { columns, pinned, widths }: Pick<RunsState, "columns" | "pinned" | "widths">,
  color: (runId: string) => string,
): GridColumn<Run>[] {
  return useMemo(
    () =>
      orderColumns(columns, pinned).map((key) => ({
        ...describeColumn(key),
        width: widths[key] ?? describeKey(key).width,
        isPinned: pinned.includes(key),
        cell: (run) => showCell(run, key, color),
      })),
    [columns, pinned, widths, color],
  );
}

export function describeColumn(
  key: string,
): Omit<GridColumn<unknown>, "width" | "isPinned" | "cell"> {
  const { title, statistic, isNumber } = describeKey(key);
  return {
    id: key,
    name: nameKey(key),
    header:
      statistic === null ? (
        title
      ) : (
        <>
          {title} <span className={classes.statistic}>{nameStatistic(statistic)}</span>
        </>
      ),
    align: isNumber ? "right" : "left",
    isSortable: isSortable(key),
  };
}
