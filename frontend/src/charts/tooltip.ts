import type { RefObject } from "react";
import type uPlot from "uplot";
import { listenForClicks } from "./interaction";
import classes from "./Plot.module.css";
import type { PlotProps } from "./types";

/** Number of lines of a tooltip that follows the cursor. */
const MOST_LINES = 12;
/**
 * Largest distance of a series' value from the cursor at which the tooltip lists it, as a share of
 * the visible range.
 */
const REACH = 0.02;
const MOST_STEPS = 200;

interface Line {
  label: string;
  color: string;
  y: number;
}

/**
 * Shows the values under the cursor, the largest first. A click pins the tooltip with all its
 * lines, until the next click or Escape; it does not where a click picks a point.
 */
export function makeTooltip(
  latest: RefObject<PlotProps>,
  yFormat: (y: number) => string,
): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = classes.tooltip ?? "";
  box.hidden = true;
  const line = document.createElement("div");
  line.className = classes.pinnedAt ?? "";
  line.hidden = true;
  /** Place on x at which the tooltip is pinned. */
  let pinned: number | null = null;
  const showAt = (u: uPlot, index: number, most: number) => {
    const x = u.data[0][index] ?? 0;
    const head = [latest.current.xFormat(x), latest.current.note?.(index) ?? ""];
    fill(box, head, buildLinesAt(u, index, latest.current), yFormat, most);
    const left = u.valToPos(x, "x");
    line.style.left = `${left}px`;
    placeBox(u, box, pinned === null ? (u.cursor.left ?? 0) : left);
  };
  const unpin = () => {
    pinned = null;
    delete box.dataset.pinned;
    box.hidden = true;
    line.hidden = true;
    document.removeEventListener("keydown", onKey);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    unpin();
  };
  const pin = (u: uPlot, index: number) => {
    pinned = u.data[0][index] ?? 0;
    box.dataset.pinned = "";
    box.hidden = false;
    line.hidden = false;
    showAt(u, index, Number.POSITIVE_INFINITY);
    document.addEventListener("keydown", onKey);
  };
  return {
    hooks: {
      init: (u) => {
        u.over.append(line, box);
        u.over.addEventListener("mouseleave", () => {
          box.hidden = pinned === null;
        });
        // The text of a pinned tooltip can be selected without a zoom.
        for (const type of ["mousedown", "mouseup", "click", "dblclick"])
          box.addEventListener(type, (event) => event.stopPropagation());
        if (latest.current.onPick === undefined)
          listenForClicks(u, (index) => (pinned === null ? pin(u, index) : unpin()));
      },
      setCursor: (u) => {
        if (pinned !== null) return;
        const index = u.cursor.idx;
        const hovered = u.over.matches(":hover");
        box.hidden = !hovered || index === null || index === undefined;
        if (!box.hidden && index !== null && index !== undefined) showAt(u, index, MOST_LINES);
      },
      draw: (u) => {
        if (pinned === null) return;
        const { min, max } = u.scales.x ?? {};
        if (u.data[0].length === 0 || pinned < (min ?? pinned) || pinned > (max ?? pinned)) unpin();
        else showAt(u, u.valToIdx(pinned), Number.POSITIVE_INFINITY);
      },
      destroy: unpin,
    },
  };
}

function buildLinesAt(u: uPlot, index: number, props: PlotProps): Line[] {
  const found = props.series.flatMap((one, i): Line[] => {
    if (one.silent || one.edge) return [];
    const y = findNearest(u, i + 1, index);
    return y === null ? [] : [{ label: one.label, color: one.color, y }];
  });
  return found.sort((a, b) => b.y - a.y);
}

function findNearest(u: uPlot, series: number, index: number): number | null {
  const column = u.data[series] ?? [];
  const x = u.data[0];
  const { min = 0, max = 0 } = u.scales.x ?? {};
  const reach = ((max ?? 0) - (min ?? 0)) * REACH;
  const near = (at: number) =>
    Math.abs((x[at] ?? Number.POSITIVE_INFINITY) - (x[index] ?? 0)) <= reach;
  for (let step = 0; step <= MOST_STEPS; step += 1) {
    const [before, after] = [index - step, index + step];
    if (!near(before) && !near(after)) return null;
    const y = (near(before) ? column[before] : null) ?? (near(after) ? column[after] : null);
    if (y !== null && y !== undefined) return y;
  }
  return null;
}

function fill(
  box: HTMLElement,
  [head = "", note = ""]: string[],
  lines: readonly Line[],
  yFormat: (y: number) => string,
  most: number,
): void {
  const title = document.createElement("strong");
  title.textContent = head;
  const rows = lines.slice(0, most).map((line) => {
    const row = document.createElement("span");
    const dot = document.createElement("i");
    dot.style.background = line.color;
    const label = document.createElement("em");
    label.textContent = line.label;
    const number = document.createElement("b");
    number.textContent = yFormat(line.y);
    row.append(dot, label, number);
    return row;
  });
  if (lines.length > most) {
    const more = document.createElement("small");
    more.textContent = `${lines.length - most} more`;
    rows.push(more);
  }
  const remark = document.createElement("small");
  remark.textContent = note;
  box.replaceChildren(title, ...(note ? [remark] : []), ...rows);
}

function placeBox(u: uPlot, box: HTMLElement, left: number): void {
  const right = left > u.over.clientWidth / 2;
  box.style.left = right ? "auto" : `${left + 14}px`;
  box.style.right = right ? `${u.over.clientWidth - left + 14}px` : "auto";
}
