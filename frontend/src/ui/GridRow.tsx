import { type CSSProperties, memo } from "react";
import type { GridColumn } from "./DataGrid";
import classes from "./DataGrid.module.css";

/** Width of the column of checkboxes in pixels. */
export const CHECK = 34;

/** What a click or a movement on a row asks for. */
export type RowAction = "open" | "hover" | "select" | "leave" | "range";

export interface Places {
  styles: readonly CSSProperties[];
  /** Sum of the widths in pixels. */
  width: number;
  /** Index of the last pinned column; -1 without one. */
  edge: number;
}

/** Where pinned columns stay when the others are scrolled. */
export function placeColumns(
  columns: readonly { width: number; isPinned: boolean }[],
  hasChecks: boolean,
): Places {
  let left = hasChecks ? CHECK : 0;
  const styles = columns.map((column) => {
    const style = column.isPinned ? { left } : {};
    left += column.width;
    return style;
  });
  return { styles, width: left, edge: columns.findLastIndex((column) => column.isPinned) };
}

interface GridRowProps<Row> {
  row: Row;
  index: number;
  columns: readonly GridColumn<Row>[];
  places: Places;
  look: string;
  isMarked: boolean;
  isHovered: boolean;
  isSelected: boolean;
  /** Name of the checkbox; `null` for a row that cannot be selected. */
  check: string | null;
  hasChecks: boolean;
  act(index: number, what: RowAction): void;
}

function PlainRow<Row>(props: GridRowProps<Row>) {
  const { row, index, columns, places, isSelected, act } = props;
  return (
    <tr
      aria-rowindex={index + 2}
      aria-selected={isSelected || undefined}
      data-marked={props.isMarked || undefined}
      data-hovered={props.isHovered || undefined}
      className={`${classes.row} ${props.look}`}
      onMouseEnter={() => act(index, "hover")}
      onClick={(event) => {
        const target = event.target as HTMLElement;
        if (!target.closest("a, button, input") && !window.getSelection()?.toString())
          act(index, "open");
      }}
    >
      {props.hasChecks && (
        <td className={`${classes.check} ${classes.pinned}`} style={{ left: 0 }}>
          {props.check !== null && (
            <input
              type="checkbox"
              aria-label={props.check}
              checked={isSelected}
              onClick={(event) =>
                act(index, isSelected ? "leave" : event.shiftKey ? "range" : "select")
              }
              onChange={() => undefined}
            />
          )}
        </td>
      )}
      {columns.map((column, at) => (
        <td
          key={column.id}
          className={[
            column.align === "right" ? classes.right : "",
            column.isPinned ? classes.pinned : "",
            at === places.edge ? classes.edge : "",
          ].join(" ")}
          style={places.styles[at]}
        >
          {column.cell(row)}
        </td>
      ))}
      <td className={classes.rest} />
    </tr>
  );
}

// A row is rendered again only when its own look changes: hovering changes two rows of many.
export const GridRow = memo(PlainRow) as typeof PlainRow;
