import {
  type ColumnDef,
  createSortedRowModel,
  type RowData,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type ReactNode, useMemo, useRef, useState } from "react";
import classes from "./DataTable.module.css";
import { IconArrowDown, IconArrowUp } from "./icons";
import { useRowKeys } from "./useRowKeys";
import { useVisibleRows, VIRTUAL_FROM } from "./useVisibleRows";

export interface Column<Row extends RowData> {
  id: string;
  header: string;
  cell(row: Row): ReactNode;
  /** Value to sort by; without one the column cannot be sorted. */
  sort?: (row: Row) => string | number;
  width?: number | string;
  align?: "right";
  /** Leaves out the column where the table is narrower: below 600, 850 or 1110 pixels. */
  hide?: "narrow" | "medium" | "wide";
  /** Breaks long text into lines, unless the table has so many rows that all must be of a height. */
  wrap?: boolean;
}

interface DataTableProps<Row extends RowData> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowId(row: Row): string;
  /** Opens a row on click and on Enter; makes `j` and `k` move. */
  onOpen?: (row: Row) => void;
  rowClass?: (row: Row) => string | undefined;
  onHover?: (row: Row | null) => void;
  /** Sorting by the server. Without it the table sorts the rows that it has. */
  sorting?: {
    state: SortingState;
    onChange(state: SortingState): void;
    sortable: readonly string[];
  };
  footer?: ReactNode;
  /** Width in pixels below which the table scrolls, where no column is left out for want of room. */
  minWidth?: number;
}

const CONTROLS = "a, button, input, label";

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  columnMeta: {} as {
    align: "right" | undefined;
    hide: "narrow" | "medium" | "wide" | undefined;
    width: number | string | undefined;
    wrap: boolean | undefined;
  },
});

type Cells<Row extends RowData> = Map<string, ColumnDef<typeof features, Row>["cell"]>;

/**
 * Functions that render cells by the latest columns. Each stays the same when the columns change:
 * a new one would be a new component, whose open menu would close.
 */
function useCells<Row extends RowData>(columns: readonly Column<Row>[]) {
  const latest = useRef(columns);
  latest.current = columns;
  const cells = useRef<Cells<Row>>(new Map());
  return (id: string) => {
    const made = cells.current.get(id);
    if (made !== undefined) return made;
    const cell: ColumnDef<typeof features, Row>["cell"] = (context) =>
      latest.current.find((one) => one.id === id)?.cell(context.row.original);
    cells.current.set(id, cell);
    return cell;
  };
}

function definitions<Row extends RowData>(
  columns: readonly Column<Row>[],
  server: readonly string[] | undefined,
  findCell: (id: string) => ColumnDef<typeof features, Row>["cell"],
) {
  return columns.map(
    (column): ColumnDef<typeof features, Row> => ({
      id: column.id,
      header: column.header,
      accessorFn: (row: Row) => (column.sort ? column.sort(row) : 0),
      cell: findCell(column.id) as never,
      enableSorting: server ? server.includes(column.id) : column.sort !== undefined,
      sortDescFirst: column.align === "right",
      sortFn: (a, b, id) => {
        const [left, right] = [a.getValue<string | number>(id), b.getValue<string | number>(id)];
        return left < right ? -1 : left > right ? 1 : 0;
      },
      meta: {
        align: column.align,
        hide: column.hide,
        width: column.width,
        wrap: column.wrap,
      },
    }),
  );
}

/** A table with sorting and keyboard selection; of many rows only the visible ones are rendered. */
export function DataTable<Row extends RowData>(props: DataTableProps<Row>) {
  const { rows, columns, onOpen, sorting } = props;
  const [localSorting, setLocalSorting] = useState<SortingState>([]);
  const findCell = useCells(columns);
  const latestFindCell = useRef(findCell);
  latestFindCell.current = findCell;
  const defined = useMemo(
    () => definitions(columns, sorting?.sortable, (id) => latestFindCell.current(id)),
    [columns, sorting?.sortable],
  );
  const table = useTable({
    features,
    data: rows as Row[],
    columns: defined,
    getRowId: props.rowId,
    manualSorting: sorting !== undefined,
    enableSortingRemoval: sorting === undefined,
    state: { sorting: sorting?.state ?? localSorting },
    onSortingChange: (update) => {
      const next = typeof update === "function" ? update(sorting?.state ?? localSorting) : update;
      (sorting?.onChange ?? setLocalSorting)(next);
    },
  });
  const model = table.getRowModel().rows;
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, last, before, after, scrollTo } = useVisibleRows(model.length, body);
  const selected = useRowKeys(
    useMemo(() => model.map((row) => row.id), [model]),
    onOpen && ((index) => onOpen((model[index] as (typeof model)[number]).original)),
    scrollTo,
  );
  return (
    <div className={classes.scroll}>
      <table
        className={classes.table}
        style={{ "--min-width": `${props.minWidth ?? 0}px` } as React.CSSProperties}
        aria-label={props.label}
        aria-rowcount={model.length}
        data-many={model.length > VIRTUAL_FROM || undefined}
      >
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const { align, hide, width } = header.column.columnDef.meta ?? {};
                const order = header.column.getIsSorted();
                const className = [
                  align === "right" ? classes.right : "",
                  hide ? classes[hide] : "",
                ].join(" ");
                const aria =
                  order === "asc" ? "ascending" : order === "desc" ? "descending" : "none";
                return (
                  <th
                    key={header.id}
                    className={className}
                    style={{ width }}
                    aria-sort={header.column.getCanSort() ? aria : undefined}
                  >
                    {header.column.getCanSort() ? (
                      <button
                        type="button"
                        className={classes.sort}
                        onClick={header.column.getToggleSortingHandler()}
                      >
                        {String(header.column.columnDef.header)}
                        {order === "asc" && <IconArrowUp size={12} />}
                        {order === "desc" && <IconArrowDown size={12} />}
                      </button>
                    ) : (
                      String(header.column.columnDef.header)
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body} onMouseLeave={() => props.onHover?.(null)}>
          {before > 0 && <tr style={{ height: before }} />}
          {model.slice(first, last).map((row, i) => (
            <tr
              key={row.id}
              aria-rowindex={first + i + 1}
              data-selected={selected === first + i || undefined}
              className={`${onOpen ? classes.open : ""} ${props.rowClass?.(row.original) ?? ""}`}
              onMouseEnter={() => props.onHover?.(row.original)}
              onClick={(event) => {
                const target = event.target as HTMLElement;
                if (!target.closest(CONTROLS) && !window.getSelection()?.toString())
                  onOpen?.(row.original);
              }}
            >
              {row.getAllCells().map((cell) => {
                const { align, hide, wrap } = cell.column.columnDef.meta ?? {};
                return (
                  <td
                    key={cell.id}
                    className={[
                      align === "right" ? classes.right : "",
                      hide ? classes[hide] : "",
                      wrap ? classes.wrap : "",
                    ].join(" ")}
                  >
                    <table.FlexRender cell={cell} />
                  </td>
                );
              })}
            </tr>
          ))}
          {after > 0 && <tr style={{ height: after }} />}
        </tbody>
      </table>
      {props.footer}
    </div>
  );
}
