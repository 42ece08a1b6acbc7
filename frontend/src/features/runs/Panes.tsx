import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react";
import classes from "./Runs.module.css";
import type { Pane } from "./search";

interface PanesProps {
  show: Pane;
  /** Width of the table as a part of both, in percent. */
  split: number;
  onSplit(split: number): void;
  table: ReactNode;
  board: ReactNode;
}

const STEP = 5;

/** Table and board side by side, with a divider that can be moved, or one of them. */
export function Panes({ show, split, onSplit, table, board }: PanesProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const drag = (event: PointerEvent) => {
    const box = frame.current?.getBoundingClientRect();
    if (dragged === null || box === undefined) return;
    setDragged(bound((100 * (event.clientX - box.left)) / box.width));
  };
  const end = () => {
    if (dragged !== null) onSplit(Math.round(dragged));
    setDragged(null);
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (by === 0) return;
    event.preventDefault();
    onSplit(bound(split + by));
  };
  const width = dragged ?? split;
  return (
    <div
      className={classes.panes}
      data-show={show}
      ref={frame}
      style={{ "--split": `${width}%` } as React.CSSProperties}
    >
      {show !== "board" && <section className={classes.pane}>{table}</section>}
      {show === "both" && (
        // biome-ignore lint/a11y/useSemanticElements: a rule cannot be dragged
        <div
          className={classes.divider}
          role="separator"
          aria-orientation="vertical"
          aria-label="Width of the table"
          aria-valuenow={Math.round(width)}
          aria-valuemin={20}
          aria-valuemax={80}
          tabIndex={0}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            setDragged(split);
          }}
          onPointerMove={drag}
          onPointerUp={end}
          onPointerCancel={() => setDragged(null)}
          onKeyDown={press}
        />
      )}
      {show !== "table" && <section className={classes.board}>{board}</section>}
    </div>
  );
}

function bound(split: number): number {
  return Math.min(80, Math.max(20, split));
}
