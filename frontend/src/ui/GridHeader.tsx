import { Menu, VisuallyHidden } from "@mantine/core";
import { type CSSProperties, type KeyboardEvent, type PointerEvent, useState } from "react";
import type { SortKey } from "@/lib/sortOrder";
import classes from "./DataGrid.module.css";
import { IconArrowDown, IconArrowUp, IconChevronDown } from "./icons";

/** What the headings of a grid do. */
export interface HeaderActions {
  /** The keys of the order, the first one first. */
  order: readonly SortKey[];
  /** Sorts by a column alone, or by it as well, behind the columns that sort already. */
  onSort(key: SortKey, isAdded: boolean): void;
  /** Leaves a column out of the order. */
  onUnsort(id: string): void;
  onResize(id: string, width: number): void;
  onPin(id: string, isPinned: boolean): void;
  onHide(id: string): void;
  /** Moves a column by one place, to the left with -1. */
  onMove(id: string, by: -1 | 1): void;
  /** Further items of a column's menu. */
  items?(id: string): readonly { label: string; run(): void }[];
}

interface HeaderColumn {
  id: string;
  name: string;
  header: React.ReactNode;
  width: number;
  align: "left" | "right";
  isSortable: boolean;
  isPinned: boolean;
}

interface GridHeaderProps {
  column: HeaderColumn;
  style: CSSProperties;
  isEdge: boolean;
  actions: HeaderActions;
}

/** The heading of a column, with its menu and the handle that changes its width. */
export function GridHeader({ column, style, isEdge, actions }: GridHeaderProps) {
  const { order } = actions;
  const place = order.findIndex(({ id }) => id === column.id);
  const key = order[place];
  const direction = key?.isDescending ? "descending" : "ascending";
  // Numbers are looked at from the highest, texts from the first.
  const isDescending = key === undefined ? column.align === "right" : !key.isDescending;
  // Several headings with `aria-sort` would read as several tables' orders.
  const sorted = place === 0 ? direction : "none";
  return (
    <th
      className={[
        classes.head,
        column.align === "right" ? classes.right : "",
        column.isPinned ? classes.pinned : "",
        isEdge ? classes.edge : "",
      ].join(" ")}
      style={style}
      aria-sort={column.isSortable ? sorted : undefined}
    >
      <span className={classes.headContent}>
        {column.isSortable ? (
          <button
            type="button"
            className={classes.sort}
            title={`${column.name}\nwith Shift: sorts by it as well`}
            onClick={(event) => actions.onSort({ id: column.id, isDescending }, event.shiftKey)}
          >
            <span className="clip">{column.header}</span>
            {key && (key.isDescending ? <IconArrowDown size={12} /> : <IconArrowUp size={12} />)}
            {key && order.length > 1 && (
              <span className={classes.place}>
                {place + 1}
                <VisuallyHidden>{`. key of the order, ${direction}`}</VisuallyHidden>
              </span>
            )}
          </button>
        ) : (
          <span className="clip" title={column.name}>
            {column.header}
          </span>
        )}
        <ColumnMenu column={column} actions={actions} />
      </span>
      <Handle column={column} onResize={actions.onResize} />
    </th>
  );
}

function ColumnMenu({ column, actions }: { column: HeaderColumn; actions: HeaderActions }) {
  const { id, isPinned } = column;
  const { order, onSort } = actions;
  const [isOpened, setIsOpened] = useState(false);
  const isKey = order.some((key) => key.id === id);
  return (
    <Menu position="bottom-start" opened={isOpened} onChange={setIsOpened}>
      <Menu.Target>
        <button
          type="button"
          className={classes.menu}
          data-opened={isOpened || undefined}
          aria-label={`Column ${column.name}`}
        >
          <IconChevronDown size={12} />
        </button>
      </Menu.Target>
      {isOpened && (
        <Menu.Dropdown>
          {column.isSortable && (
            <>
              {[false, true].map((isDescending) => (
                <Menu.Item
                  key={String(isDescending)}
                  onClick={() => onSort({ id, isDescending }, isKey && order.length > 1)}
                >
                  {isDescending ? "Sort descending" : "Sort ascending"}
                </Menu.Item>
              ))}
              {!isKey && (
                <Menu.Item
                  onClick={() => onSort({ id, isDescending: column.align === "right" }, true)}
                >
                  Sort by it as well
                </Menu.Item>
              )}
              {isKey && order.length > 1 && (
                <Menu.Item onClick={() => actions.onUnsort(id)}>Leave out of the order</Menu.Item>
              )}
            </>
          )}
          {actions.items?.(id).map(({ label, run }) => (
            <Menu.Item key={label} onClick={run}>
              {label}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item onClick={() => actions.onPin(id, !isPinned)}>
            {isPinned ? "Unpin" : "Pin to the left"}
          </Menu.Item>
          <Menu.Item onClick={() => actions.onMove(id, -1)}>Move left</Menu.Item>
          <Menu.Item onClick={() => actions.onMove(id, 1)}>Move right</Menu.Item>
          <Menu.Item onClick={() => actions.onHide(id)}>Hide the column</Menu.Item>
        </Menu.Dropdown>
      )}
    </Menu>
  );
}

const STEP = 16;

interface HandleProps {
  column: HeaderColumn;
  onResize(id: string, width: number): void;
}

/** Changes the width of a column by dragging, or by the arrow keys. */
function Handle({ column, onResize }: HandleProps) {
  const [moved, setMoved] = useState<{ from: number; by: number } | null>(null);
  const start = (event: PointerEvent<HTMLDivElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    setMoved({ from: event.clientX, by: 0 });
  };
  const end = () => {
    if (moved !== null && moved.by !== 0) onResize(column.id, column.width + moved.by);
    setMoved(null);
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (by === 0) return;
    event.preventDefault();
    onResize(column.id, column.width + by);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be dragged
    <div
      className={classes.handle}
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${column.name}`}
      aria-valuenow={column.width}
      tabIndex={0}
      data-moved={moved !== null || undefined}
      style={moved === null ? undefined : { transform: `translateX(${moved.by}px)` }}
      onPointerDown={start}
      onPointerMove={(event) => {
        if (moved !== null) setMoved({ ...moved, by: event.clientX - moved.from });
      }}
      onPointerUp={end}
      onPointerCancel={() => setMoved(null)}
      onKeyDown={press}
    />
  );
}
