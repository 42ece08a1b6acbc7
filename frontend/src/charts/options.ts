import type { RefObject } from "react";
import uPlot from "uplot";
import { formatCompact, formatValue } from "@/lib/format";
import { followFocus, listenForPicks } from "./interaction";
import { drawMarks } from "./marks";
import { makeTooltip } from "./tooltip";
import type { PlotProps } from "./types";

const FONT = "11px 'Inter Variable', sans-serif";
/** Width in pixels of a digit of a label. */
const LABEL_CHARACTER = 6.6;
const LEAST_DRAG = 6;
/** Largest distance in pixels of a line from the cursor at which the line has the focus. */
const FOCUS_REACH = 18;

/** uPlot's options for a plot of a width in pixels. Reads the theme's colours from the page. */
export function buildOptions(
  latest: RefObject<PlotProps>,
  host: HTMLElement,
  width: number,
): uPlot.Options {
  const props = latest.current;
  const { ink, line } = readColors(props.scheme, host);
  const yFormat = (y: number) => (latest.current.yFormat ?? ((v: number) => formatValue(v, 4)))(y);
  const axis: uPlot.Axis = {
    stroke: ink,
    font: FONT,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(50, width),
    height: props.height,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    scales: {
      x: {
        time: false,
        ...(props.range ? { range: (_u, low, high) => xRange(latest.current, low, high) } : {}),
      },
      y: buildYScale(latest),
    },
    axes: [
      {
        ...axis,
        space: 70,
        size: 28,
        gap: 6,
        values: (_u, ticks) => ticks.map((tick) => latest.current.xFormat(tick)),
      },
      {
        ...axis,
        space: 34,
        gap: 6,
        size: (_u, labels) => yWidth(labels ?? []),
        values: (_u, ticks) => ticks.map((tick) => (tick === null ? "" : yTick(tick))),
      },
    ],
    cursor: {
      ...(props.sync ? { sync: { key: props.sync, setSeries: false } } : {}),
      drag: { x: props.onZoom !== undefined, y: false, setScale: false },
      points: { size: 6, width: 1.5 },
      focus: {
        prox: props.onFocus ? FOCUS_REACH : -1,
        dist: (_u, series, _index, at, cursor) =>
          latest.current.series[series - 1]?.id === undefined
            ? Number.POSITIVE_INFINITY
            : at - cursor,
      },
      bind: { dblclick: () => () => reset(latest) },
      y: false,
    },
    focus: { alpha: 0.22 },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    series: [
      {},
      ...props.series.map(
        (one): uPlot.Series => ({
          label: one.label,
          stroke: one.edge ? "transparent" : one.color,
          width: one.edge ? 0 : (one.width ?? 1.5),
          ...(one.dash ? { dash: one.dash } : {}),
          spanGaps: !one.gaps,
          points: one.dots
            ? { show: true, size: 5, fill: one.color, stroke: one.color }
            : { show: hasSinglePoint, filter: findSinglePoint },
        }),
      ),
    ],
    bands: (props.bands ?? []).map((band) => ({
      series: [band.high + 1, band.low + 1],
      fill: band.fill,
    })),
    hooks: { setSelect: [(u) => select(u, latest)] },
    plugins: [
      makeTooltip(latest, yFormat),
      drawMarks(latest, host),
      ...(props.onFocus ? [followFocus(latest)] : []),
      ...(props.onPick ? [listenForPicks(latest)] : []),
    ],
  };
}

/** Whether a line has one point only, which is drawn, since a line through it is not. */
function hasSinglePoint(u: uPlot, index: number): boolean {
  return findSinglePoint(u, index) !== null;
}

function findSinglePoint(u: uPlot, index: number): number[] | null {
  if (u.series[index]?.width === 0) return null;
  const column = u.data[index] ?? [];
  let found = -1;
  for (let i = 0; i < column.length; i += 1) {
    if (column[i] === null || column[i] === undefined) continue;
    if (found >= 0) return null;
    found = i;
  }
  return found < 0 ? null : [found];
}

const colors = new Map<PlotProps["scheme"], { ink: string; line: string }>();

/** The theme's colours. They are read once: reading them while charts are made costs a layout. */
function readColors(scheme: PlotProps["scheme"], host: HTMLElement): { ink: string; line: string } {
  const known = colors.get(scheme);
  if (known !== undefined) return known;
  const css = getComputedStyle(host);
  const color = (name: string) => css.getPropertyValue(name).trim();
  const read = { ink: color("--ink-3"), line: color("--line") };
  // Another scheme may be on its way to the page, so its colours are not kept.
  if (document.documentElement.dataset.mantineColorScheme === scheme) colors.set(scheme, read);
  return read;
}

function buildYScale(latest: RefObject<PlotProps>): uPlot.Scale {
  const { scale = "linear", yRange: fixed } = latest.current;
  const ends = () => latest.current.yRange?.() ?? null;
  if (scale === "linear") return { range: (_u, low, high) => pad(...(ends() ?? [low, high])) };
  const shape: uPlot.Scale = scale === "log" ? { distr: 3 } : { distr: 4, asinh: 1 };
  if (fixed === undefined) return shape;
  return {
    ...shape,
    range: (_u, low, high) => {
      const [least, most] = ends() ?? [low, high];
      return scale === "log"
        ? uPlot.rangeLog(least ?? 1, most ?? 10, 10, false)
        : uPlot.rangeAsinh(least ?? 0, most ?? 1, 10, false);
    },
  };
}

function xRange({ range }: PlotProps, low: number | null, high: number | null): [number, number] {
  const start = range?.start ?? low ?? 0;
  const end = range?.end ?? high ?? 1;
  return end > start ? [start, end] : [start - 0.5, start + 0.5];
}

function pad(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const span = high - low || Math.abs(high) * 0.1 || 1;
  const bottom = low >= 0 && low < span * 0.35 ? 0 : low - span * 0.06;
  return [bottom, high + span * 0.06];
}

function yTick(tick: number): string {
  return Math.abs(tick) >= 10_000 ? formatCompact(tick) : formatValue(tick, 4);
}

/** Width of the longest label, with a minimum that keeps the plots of several panels aligned. */
function yWidth(labels: string[]): number {
  const longest = Math.max(0, ...labels.map((label) => label.length));
  return Math.max(46, Math.ceil(10 + LABEL_CHARACTER * longest));
}

function select(u: uPlot, latest: RefObject<PlotProps>): void {
  const { left, width } = u.select;
  if (width < LEAST_DRAG) return;
  latest.current.onZoom?.({ start: u.posToVal(left, "x"), end: u.posToVal(left + width, "x") });
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

function reset(latest: RefObject<PlotProps>): null {
  latest.current.onZoom?.(null);
  return null;
}
