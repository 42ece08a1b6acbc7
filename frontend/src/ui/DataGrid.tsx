import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type ReactNode, useCallback, useEffect, useMemo, useRef } from "react";
import classes from "./DataGrid.module.css";
import { GridHeader, type HeaderActions } from "./GridHeader";
import { CHECK, GridRow, placeColumns, type RowAction } from "./GridRow";
import { useRowKeys } from "./useRowKeys";

export interface GridColumn<Row> {
  id: string;
  /** Heading as plain text, for the column's menu. */
  name: string;
  header: ReactNode;
  cell(row: Row): ReactNode;
  /** Pixels. */
  width: number;
  align: "left" | "right";
  isSortable: boolean;
  /** Stays in place while the others are scrolled; pinned columns come first. */
  isPinned: boolean;
}

/** The rows that are selected, and how to select others. */
export interface GridSelection<Row> {
  ids: ReadonlySet<string>;
  /** Whether the row can be selected. */
  isSelectable(row: Row): boolean;
  /** Selects or leaves a row; with `toLast` all from the row that was selected before. */
  select(id: string, isSelected: boolean, toLast: boolean): void;
  /** Selects or leaves all rows that are loaded. */
  selectAll(isSelected: boolean): void;
  name(row: Row): string;
}

interface DataGridProps<Row> extends HeaderActions {
  label: string;
  rows: readonly Row[];
  columns: readonly GridColumn<Row>[];
  rowId(row: Row): string;
  onOpen(row: Row): void;
  rowClass?(row: Row): string | undefined;
  hovered: string | null;
  onHover(id: string | null): void;
  selection?: GridSelection<Row>;
  /** Called when the last rows are about to be shown. */
  onEnd(): void;
  /** Number of all rows, also of those that are not loaded, where it is known. */
  total?: number | undefined;
  footer?: ReactNode;
}

const ROW = 30;
const BEFORE_END = 60;
/** Number of rows beyond which only the visible ones are rendered. */
const VIRTUAL_FROM = 60;

/**
 * A table that scrolls in both directions, of which only the visible rows are rendered. Columns are
 * sorted, resized and pinned by their headings.
 */
export function DataGrid<Row>(props: DataGridProps<Row>) {
  const { rows, columns, rowId, onOpen, selection, onEnd } = props;
  const pane = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => ROW,
    overscan: 12,
    initialRect: { width: 1_000, height: 900 },
  });
  const items = virtual.getVirtualItems();
  const isVirtual = rows.length > VIRTUAL_FROM;
  const first = isVirtual ? (items[0]?.index ?? 0) : 0;
  const end = isVirtual ? (items.at(-1)?.index ?? -1) + 1 : rows.length;
  const isNearEnd = rows.length > 0 && end >= rows.length - BEFORE_END;
  const latestEnd = useRef(onEnd);
  latestEnd.current = onEnd;
  useEffect(() => {
    if (isNearEnd && rows.length > 0) latestEnd.current();
  }, [isNearEnd, rows.length]);
  const marked = useRowKeys(
    useMemo(() => rows.map(rowId), [rows, rowId]),
    (index) => onOpen(rows[index] as Row),
    (index) => virtual.scrollToIndex(index),
  );
  const places = useMemo(
    () => placeColumns(columns, selection !== undefined),
    [columns, selection],
  );
  const latest = useRef(props);
  latest.current = props;
  const act = useCallback((index: number, what: RowAction) => {
    const now = latest.current;
    const row = now.rows[index];
    if (row === undefined) return;
    if (what === "open") now.onOpen(row);
    else if (what === "hover") now.onHover(now.rowId(row));
    else now.selection?.select(now.rowId(row), what !== "leave", what === "range");
  }, []);
  const loaded = selection && rows.filter(selection.isSelectable);
  const isAll = loaded?.every((row) => selection?.ids.has(rowId(row))) ?? false;
  return (
    <div className={classes.pane} ref={pane}>
      <table
        className={classes.table}
        aria-label={props.label}
        aria-rowcount={(props.total ?? rows.length) + 1}
        style={{ width: places.width }}
      >
        <colgroup>
          {selection && <col style={{ width: CHECK }} />}
          {columns.map((column) => (
            <col key={column.id} style={{ width: column.width }} />
          ))}
          <col />
        </colgroup>
        <thead>
          <tr>
            {selection && (
              <th className={`${classes.check} ${classes.pinned}`} style={{ left: 0 }}>
                <input
                  type="checkbox"
                  aria-label="Select the rows that are loaded"
                  checked={isAll && (loaded?.length ?? 0) > 0}
                  onChange={(event) => selection.selectAll(event.currentTarget.checked)}
                />
              </th>
            )}
            {columns.map((column, index) => (
              <GridHeader
                key={column.id}
                column={column}
                style={places.styles[index] as CSSProperties}
                isEdge={index === places.edge}
                actions={props}
              />
            ))}
            <td className={classes.rest} />
          </tr>
        </thead>
        <tbody onMouseLeave={() => props.onHover(null)}>
          {first > 0 && <tr aria-hidden style={{ height: first * ROW }} />}
          {rows.slice(first, end).map((row, i) => (
            <GridRow
              key={rowId(row)}
              row={row}
              index={first + i}
              columns={columns}
              places={places}
              look={props.rowClass?.(row) ?? ""}
              isMarked={marked === first + i}
              isHovered={props.hovered === rowId(row)}
              isSelected={selection?.ids.has(rowId(row)) ?? false}
              check={selection?.isSelectable(row) ? selection.name(row) : null}
              hasChecks={selection !== undefined}
              act={act}
            />
          ))}
          {end < rows.length && <tr aria-hidden style={{ height: (rows.length - end) * ROW }} />}
        </tbody>
      </table>
      {props.footer}
    </div>
  );
}
