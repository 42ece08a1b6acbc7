import { useElementSize } from "@mantine/hooks";
import { useState } from "react";
import { formatValue } from "@/lib/format";
import { Axes } from "./Axes";
import classes from "./Figures.module.css";
import { findRange, makeScale } from "./scale";
import tooltip from "./Tooltip.module.css";

type Column = readonly (number | null)[];

export interface FigureLine {
  name: string;
  color: string;
  y: Column;
  low?: Column | null;
  high?: Column | null;
  /** Dashes tell lines apart whose colours are alike. */
  dash?: string;
}

interface LineFigureProps {
  label: string;
  x: readonly number[];
  lines: readonly FigureLine[];
  xLabel: string;
  yLabel: string;
  xFormat?: (value: number) => string;
  height?: number;
  /** Range of y; by default that of the lines and bands. */
  range?: readonly [number, number];
}

const BOX = { left: 62, top: 12, right: 12, bottom: 44 };
const MOST_NAMED = 12;

/** Lines with bands over one x, with the values under the cursor. */
export function LineFigure(props: LineFigureProps) {
  const { label, x, lines, xLabel, yLabel, height = 300 } = props;
  const { ref, width } = useElementSize();
  const [at, setAt] = useState<number | null>(null);
  const xFormat = props.xFormat ?? ((value: number) => formatValue(value, 4));
  const box = {
    left: BOX.left,
    right: Math.max(BOX.left + 40, width - BOX.right),
    top: BOX.top,
    bottom: height - BOX.bottom,
  };
  const values = lines.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])]);
  const xScale = makeScale(findRange(x, 0), [box.left, box.right], width / 90);
  const yScale = makeScale(props.range ?? findRange(values), [box.bottom, box.top], height / 55);
  const move = (event: React.MouseEvent<SVGSVGElement>) => {
    const pixel = event.clientX - event.currentTarget.getBoundingClientRect().left;
    setAt(findNearest(x, xScale, pixel));
  };
  const shown = at === null ? null : (x[at] ?? null);
  return (
    <div className={classes.host} ref={ref}>
      <svg
        role="img"
        aria-label={label}
        height={height}
        onMouseMove={move}
        onMouseLeave={() => setAt(null)}
      >
        <Axes box={box} x={xScale} y={yScale} xLabel={xLabel} yLabel={yLabel} xFormat={xFormat} />
        {lines.map((line) => (
          <path
            key={`band ${line.name}`}
            d={band(x, line, xScale, yScale)}
            style={{ fill: line.color, fillOpacity: 0.16, stroke: "none" }}
          />
        ))}
        {lines.map((line) => (
          <path
            key={line.name}
            d={trace(x, line.y, xScale, yScale)}
            style={{
              fill: "none",
              stroke: line.color,
              strokeWidth: 1.8,
              strokeLinejoin: "round",
              strokeLinecap: "round",
              strokeDasharray: line.dash,
            }}
          />
        ))}
        {shown !== null && (
          <line
            className={classes.reference}
            x1={xScale(shown)}
            x2={xScale(shown)}
            y1={box.top}
            y2={box.bottom}
          />
        )}
      </svg>
      {shown !== null && at !== null && (
        <div
          className={tooltip.tooltip}
          style={
            xScale(shown) > width / 2
              ? { right: width - xScale(shown) + 12, top: 12 }
              : { left: xScale(shown) + 12, top: 12 }
          }
        >
          <strong>{xFormat(shown)}</strong>
          {listValues(x, lines, at).map(({ line, index }) => (
            <span key={line.name}>
              <i style={{ background: line.color }} />
              <em>{line.name}</em>
              <b>{describe(line, index)}</b>
            </span>
          ))}
        </div>
      )}
      <Legend entries={lines} />
    </div>
  );
}

interface LegendEntry {
  name: string;
  color: string;
  dash?: string | undefined;
}

/** The names of lines or groups with their colours. */
export function Legend({ entries }: { entries: readonly LegendEntry[] }) {
  if (entries.length < 2) return null;
  return (
    <ul className={classes.legend}>
      {entries.map((one) => (
        <li key={one.name}>
          <svg aria-hidden="true">
            <line
              x1={0}
              x2={22}
              y1={5}
              y2={5}
              style={{ stroke: one.color, strokeWidth: 3, strokeDasharray: one.dash }}
            />
          </svg>
          {one.name}
        </li>
      ))}
    </ul>
  );
}

function describe(line: FigureLine, at: number): string {
  const [value, low, high] = [line.y[at], line.low?.[at], line.high?.[at]];
  const text = formatValue(value ?? null, 4);
  if (low === null || low === undefined || high === null || high === undefined) return text;
  return `${text} [${formatValue(low, 4)}, ${formatValue(high, 4)}]`;
}

/** The lines with a value around `at`, the highest first. */
function listValues(x: readonly number[], lines: readonly FigureLine[], at: number) {
  return lines
    .flatMap((line) => {
      const index = findValue(x, line.y, at);
      return index === null ? [] : [{ line, index, value: line.y[index] ?? 0 }];
    })
    .sort((a, b) => b.value - a.value)
    .slice(0, MOST_NAMED);
}

function findNearest(x: readonly number[], scale: (x: number) => number, at: number) {
  let found: number | null = null;
  for (const [index, value] of x.entries())
    if (found === null || Math.abs(scale(value) - at) < Math.abs(scale(x[found] ?? 0) - at))
      found = index;
  return found;
}

type Place = (value: number) => number;

/**
 * A line through the known values. Positions without one are those of other lines: the line goes on
 * past them. A single value is a dot.
 */
export function trace(x: readonly number[], y: Column, toX: Place, toY: Place): string {
  const corners = [...x.keys()]
    .filter((index) => isKnown(y[index]))
    .map((index) => `${toX(x[index] ?? 0).toFixed(1)} ${toY(y[index] ?? 0).toFixed(1)}`);
  if (corners.length === 1) corners.push(...corners);
  return corners.length === 0 ? "" : `M${corners.join("L")}`;
}

function isKnown(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}

/** The position nearest to `at`, within the line, at which it has a value. */
export function findValue(x: readonly number[], y: Column, at: number): number | null {
  const known = [...x.keys()].filter((index) => isKnown(y[index]));
  const [first, last] = [known[0], known.at(-1)];
  if (first === undefined || last === undefined || at < first || at > last) return null;
  const distance = (index: number) => Math.abs((x[index] ?? 0) - (x[at] ?? 0));
  return known.reduce((best, index) => (distance(index) < distance(best) ? index : best), first);
}

/** The area between `low` and `high`, with a gap where the line has a value but no interval. */
export function band(
  x: readonly number[],
  { y, low, high }: FigureLine,
  toX: Place,
  toY: Place,
): string {
  if (!low || !high) return "";
  let path = "";
  let part: number[] = [];
  const close = () => {
    const corner = (index: number, of: Column) =>
      `${toX(x[index] ?? 0).toFixed(1)} ${toY(of[index] ?? 0).toFixed(1)}`;
    if (part.length > 1)
      path += `M${[...part.map((i) => corner(i, high)), ...part.reverse().map((i) => corner(i, low))].join("L")}Z`;
    part = [];
  };
  for (const index of x.keys()) {
    const known = typeof low[index] === "number" && typeof high[index] === "number";
    if (known) part.push(index);
    else if (isKnown(y[index])) close();
  }
  close();
  return path;
}
