import { useElementSize } from "@mantine/hooks";
import { useState } from "react";
import { formatValue } from "@/lib/format";
import classes from "./Figures.module.css";

export interface ParallelAxis {
  name: string;
  /** Values that have no order, from the bottom to the top; without them the axis is of numbers. */
  categories?: readonly string[];
  log?: boolean;
}

export interface ParallelLine {
  key: string;
  name: string;
  color: string;
  /** One value for each axis: a number, or the position in its categories; `null` is a gap. */
  values: readonly (number | null)[];
}

interface ParallelFigureProps {
  label: string;
  axes: readonly ParallelAxis[];
  lines: readonly ParallelLine[];
  height?: number;
}

const TOP = 42;
const BOTTOM = 22;
const SIDE = 70;
const LONGEST = 16;
/** Distance of two axes below which their names would overlap; a narrower figure is scrolled. */
const NARROWEST = 58;

/** Lines over parallel axes, the last of which is usually the score. */
export function ParallelFigure({ label, axes, lines, height = 320 }: ParallelFigureProps) {
  const { ref, width } = useElementSize();
  const [hovered, setHovered] = useState<string | null>(null);
  const gaps = axes.length - 1;
  const step = gaps > 0 ? Math.max(NARROWEST, (width - 2 * SIDE) / gaps) : 0;
  const drawn = 2 * SIDE + gaps * step;
  const places = axes.map((axis, index) => makeAxis(axis, lines, index, height));
  const trace = (line: ParallelLine) => {
    let path = "";
    let pen = "M";
    for (const [index, value] of line.values.entries()) {
      const place = places[index];
      if (value === null || place === undefined) pen = "M";
      else {
        path += `${pen}${(SIDE + index * step).toFixed(1)} ${place.at(value).toFixed(1)}`;
        pen = "L";
      }
    }
    return path;
  };
  return (
    <section
      className={`${classes.host} ${classes.scrolled}`}
      ref={ref}
      aria-label={label}
      // The keyboard scrolls a figure that is wider than its place.
      {...(width > 0 && drawn > width + 1 && { tabIndex: 0 })}
    >
      <svg role="img" aria-label={label} height={height} style={{ minWidth: drawn }}>
        {lines.map((line) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the table below has the numbers
          <path
            key={line.key}
            d={trace(line)}
            onMouseEnter={() => setHovered(line.key)}
            onMouseLeave={() => setHovered(null)}
            style={{
              fill: "none",
              stroke: line.color,
              strokeWidth: hovered === line.key ? 3.5 : 1.8,
              strokeOpacity: hovered === null || hovered === line.key ? 0.85 : 0.2,
            }}
          >
            <title>{line.name}</title>
          </path>
        ))}
        {axes.map((axis, index) => (
          <g key={axis.name} className={classes.grid}>
            <line
              x1={SIDE + index * step}
              x2={SIDE + index * step}
              y1={TOP}
              y2={height - BOTTOM}
              style={{ stroke: "var(--control-line)" }}
            />
            <text
              className={classes.heading}
              x={SIDE + index * step}
              y={index % 2 === 0 || step > 110 ? 13 : 27}
              textAnchor="middle"
            >
              {shorten(axis.name)}
              <title>{axis.name}</title>
            </text>
            {places[index]?.ticks.map(({ value, text }) => (
              <text
                key={text}
                className={`${classes.faint} ${classes.tick}`}
                x={SIDE + index * step + (index === axes.length - 1 ? 6 : -5)}
                y={places[index]?.at(value)}
                textAnchor={index === axes.length - 1 ? "start" : "end"}
                dominantBaseline="middle"
              >
                {text}
              </text>
            ))}
          </g>
        ))}
      </svg>
    </section>
  );
}

interface Placed {
  at(value: number): number;
  ticks: { value: number; text: string }[];
}

const MOST_TICKS = 7;

function makeAxis(
  axis: ParallelAxis,
  lines: readonly ParallelLine[],
  index: number,
  height: number,
): Placed {
  const values = lines.flatMap((line) => line.values[index] ?? []);
  const bend = axis.log ? Math.log10 : (value: number) => value;
  const [low, high] = [Math.min(...values.map(bend)), Math.max(...values.map(bend))];
  const at = (value: number) => {
    const share = high > low ? (bend(value) - low) / (high - low) : 0.5;
    return height - BOTTOM - share * (height - BOTTOM - TOP);
  };
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const shown =
    distinct.length <= MOST_TICKS
      ? distinct
      : [distinct[0] ?? 0, distinct[distinct.length >> 1] ?? 0, distinct.at(-1) ?? 0];
  return {
    at,
    ticks: shown.map((value) => ({
      value,
      text: axis.categories ? shorten(axis.categories[value] ?? "") : formatValue(value, 4),
    })),
  };
}

function shorten(text: string): string {
  return text.length <= LONGEST ? text : `…${text.slice(1 - LONGEST)}`;
}
