import { Menu } from "@mantine/core";
import { type CSSProperties, type KeyboardEvent, type PointerEvent, useState } from "react";
import classes from "./DataGrid.module.css";
import { IconArrowDown, IconArrowUp, IconChevronDown } from "./icons";

/** What the headings of a grid do. */
export interface HeaderActions {
  order: { id: string; isDescending: boolean };
  onSort(id: string, isDescending: boolean): void;
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
  place: CSSProperties;
  isEdge: boolean;
  actions: HeaderActions;
}

/** The heading of a column, with its menu and the handle that changes its width. */
export function GridHeader({ column, place, isEdge, actions }: GridHeaderProps) {
  const { order } = actions;
  const isOrder = order.id === column.id;
  const sorted = isOrder ? (order.isDescending ? "descending" : "ascending") : "none";
  // Numbers are looked at from the highest, texts from the first.
  const isDescending = isOrder ? !order.isDescending : column.align === "right";
  return (
    <th
      className={[
        classes.head,
        column.align === "right" ? classes.right : "",
        column.isPinned ? classes.pinned : "",
        isEdge ? classes.edge : "",
      ].join(" ")}
      style={place}
      aria-sort={column.isSortable ? sorted : undefined}
    >
      <span className={classes.headContent}>
        {column.isSortable ? (
          <button
            type="button"
            className={classes.sort}
            title={column.name}
            onClick={() => actions.onSort(column.id, isDescending)}
          >
            <span className="clip">{column.header}</span>
            {isOrder &&
              (order.isDescending ? <IconArrowDown size={12} /> : <IconArrowUp size={12} />)}
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
  const [isOpened, setIsOpened] = useState(false);
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
              <Menu.Item onClick={() => actions.onSort(id, false)}>Sort ascending</Menu.Item>
              <Menu.Item onClick={() => actions.onSort(id, true)}>Sort descending</Menu.Item>
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
