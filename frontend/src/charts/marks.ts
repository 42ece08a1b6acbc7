import type { RefObject } from "react";
import type uPlot from "uplot";
import type { PlotMark, PlotProps } from "./types";

/**
 * Largest number of marks that are drawn with a label. Up to `MOST` marks are drawn as ticks at the
 * bottom; more are not drawn.
 */
const LABELLED = 6;
const MOST = 80;
const TICK = 6;
const ROOM = 4;

/** Draws the plot's marks below its curves. */
export function drawMarks(latest: RefObject<PlotProps>, host: HTMLElement): uPlot.Plugin {
  return {
    hooks: { drawAxes: (u) => draw(u, latest.current.marks ?? [], getComputedStyle(host)) },
  };
}

function draw(u: uPlot, all: readonly PlotMark[], css: CSSStyleDeclaration): void {
  const { left, top, width, height } = u.bbox;
  const placed = all.map((mark) => ({ ...mark, at: u.valToPos(mark.x, "x", true) }));
  const shown = placed.filter(({ at }) => at >= left && at <= left + width);
  if (shown.length === 0 || shown.length > MOST) return;
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const labelled = shown.length <= LABELLED;
  ctx.save();
  ctx.strokeStyle = css.getPropertyValue("--control-line");
  ctx.fillStyle = css.getPropertyValue("--ink-3");
  ctx.lineWidth = ratio;
  ctx.font = `${11 * ratio}px 'Inter Variable', sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  if (labelled) ctx.setLineDash([2 * ratio, 3 * ratio]);
  let free = left;
  for (const { at, label } of shown) {
    ctx.beginPath();
    ctx.moveTo(at, labelled ? top : top + height - TICK * ratio);
    ctx.lineTo(at, top + height);
    ctx.stroke();
    const x = placeLabel(ctx.measureText(label).width, at + ROOM * ratio, left + width);
    if (!labelled || x < free) continue;
    ctx.fillText(label, x, top + ratio);
    free = x + ctx.measureText(label).width + ROOM * ratio;
  }
  ctx.restore();
}

/** Places a label right of its mark, or left of it at the plot's edge. */
function placeLabel(width: number, at: number, edge: number): number {
  return at + width <= edge ? at : at - width - 2 * ROOM * devicePixelRatio;
}
