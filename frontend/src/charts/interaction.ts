/** What a chart reports: the line under the cursor, and the point that was clicked. */
import type { RefObject } from "react";
import type uPlot from "uplot";
import type { PlotProps } from "./types";

/** Largest distance in pixels between a click and its point, and of a click that is no drag. */
const PICK_REACH = 28;
const STILL = 4;

/** Reports which line has the focus. */
export function followFocus(latest: RefObject<PlotProps>): uPlot.Plugin {
  const report = (id: string | null) => {
    if (id !== (latest.current.focused ?? null)) latest.current.onFocus?.(id);
  };
  return {
    hooks: {
      init: (u) => u.over.addEventListener("mouseleave", () => report(null)),
      setSeries: (u, index) => {
        if (!u.over.matches(":hover")) return;
        report(index === null ? null : (latest.current.series[index - 1]?.id ?? null));
      },
    },
  };
}

/** Makes the line `id` stand out; `null` shows all lines alike. */
export function focusLine(u: uPlot, props: PlotProps): void {
  const at = props.focused ? props.series.findLastIndex((one) => one.id === props.focused) : -1;
  // uPlot takes `null` for all lines; its types do not say so of a chart that has the focus.
  u.setSeries(at < 0 ? null : at + 1, { focus: true }, false);
}

/** Reports clicks near a point. */
export function listenForPicks(latest: RefObject<PlotProps>): uPlot.Plugin {
  return {
    hooks: {
      init: (u) => {
        listenForClicks(u, (index) => latest.current.onPick?.(index));
        u.over.style.cursor = "pointer";
      },
    },
  };
}

/** Calls `act` with the index of the point near which a click is that is no drag. */
export function listenForClicks(u: uPlot, act: (index: number) => void): void {
  let began: { x: number; y: number } | null = null;
  u.over.addEventListener("mousedown", (event) => {
    began = { x: event.clientX, y: event.clientY };
  });
  u.over.addEventListener("click", (event) => {
    const still =
      began !== null && Math.hypot(event.clientX - began.x, event.clientY - began.y) <= STILL;
    const index = u.cursor.idx;
    if (!still || index === null || index === undefined) return;
    const at = u.valToPos(u.data[0][index] ?? 0, "x");
    if (Math.abs(at - (u.cursor.left ?? -PICK_REACH)) <= PICK_REACH) act(index);
  });
}
