import type { RefObject } from "react";
import type uPlot from "uplot";
import classes from "./Plot.module.css";
import type { PlotProps } from "./types";

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

/** Shows the values under the cursor, the largest first. */
export function makeTooltip(
  latest: RefObject<PlotProps>,
  yFormat: (y: number) => string,
): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = classes.tooltip ?? "";
  box.hidden = true;
  return {
    hooks: {
      init: (u) => {
        u.over.append(box);
        u.over.addEventListener("mouseleave", () => {
          box.hidden = true;
        });
      },
      setCursor: (u) => {
        const index = u.cursor.idx;
        const hovered = u.over.matches(":hover");
        box.hidden = !hovered || index === null || index === undefined;
        if (box.hidden || index === null || index === undefined) return;
        const { xFormat, note } = latest.current;
        const head = [xFormat(u.data[0][index] ?? 0), note?.(index) ?? ""];
        fill(box, head, buildLinesAt(u, index, latest.current), yFormat);
        placeBox(u, box);
      },
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
): void {
  const title = document.createElement("strong");
  title.textContent = head;
  const rows = lines.slice(0, MOST_LINES).map((line) => {
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
  if (lines.length > MOST_LINES) {
    const more = document.createElement("small");
    more.textContent = `${lines.length - MOST_LINES} more`;
    rows.push(more);
  }
  const remark = document.createElement("small");
  remark.textContent = note;
  box.replaceChildren(title, ...(note ? [remark] : []), ...rows);
}

function placeBox(u: uPlot, box: HTMLElement): void {
  const left = u.cursor.left ?? 0;
  const right = left > u.over.clientWidth / 2;
  box.style.left = right ? "auto" : `${left + 14}px`;
  box.style.right = right ? `${u.over.clientWidth - left + 14}px` : "auto";
}
