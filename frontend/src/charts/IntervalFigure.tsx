import { useElementSize } from "@mantine/hooks";
import { formatValue } from "@/lib/format";
import classes from "./Figures.module.css";
import { findRange, makeScale } from "./scale";

export interface Interval {
  value: number;
  /** `null` where there are too few seeds for an interval. */
  low: number | null;
  high: number | null;
}

export interface IntervalPanel {
  heading: string;
  /** One interval for each row; `null` where a row has none. */
  intervals: readonly (Interval | null)[];
  /** Single values beside the interval, as those of seeds. */
  points?: readonly (readonly number[])[];
  /** A value that is marked, as the one that stands for no difference. */
  mark?: number;
  range?: readonly [number, number];
}

interface IntervalFigureProps {
  label: string;
  rows: readonly { name: string; color: string }[];
  panels: readonly IntervalPanel[];
}

const ROW = 30;
const HEAD = 30;
const FOOT = 26;
const GAP = 26;
const NARROWEST = 190;
const CHARACTER = 6.4;

/** Intervals of several statistics side by side, one row for each group. */
export function IntervalFigure({ label, rows, panels }: IntervalFigureProps) {
  const { ref, width } = useElementSize();
  const longest = Math.max(0, ...rows.map((row) => row.name.length));
  const names = Math.min(Math.max(70, longest * CHARACTER + 16), Math.max(110, width * 0.34));
  const room = Math.max(0, width - names);
  const columns = Math.max(1, Math.min(panels.length, Math.floor(room / NARROWEST)));
  const each = Math.max(60, room / columns - GAP);
  const block = HEAD + rows.length * ROW + FOOT;
  const lines = Math.ceil(panels.length / columns);
  return (
    <div className={classes.host} ref={ref}>
      <svg role="img" aria-label={label} height={Math.max(1, lines * block)}>
        {Array.from({ length: lines }, (_, line) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
          <g key={line}>
            {rows.map((row, index) => (
              <text
                key={row.name}
                x={0}
                y={line * block + HEAD + (index + 0.5) * ROW}
                dominantBaseline="middle"
              >
                {cut(row.name, names / CHARACTER)}
                <title>{row.name}</title>
              </text>
            ))}
          </g>
        ))}
        {panels.map((panel, index) => (
          <PanelOf
            key={panel.heading}
            panel={panel}
            rows={rows}
            left={names + (index % columns) * (each + GAP)}
            top={Math.floor(index / columns) * block}
            width={each}
          />
        ))}
      </svg>
    </div>
  );
}

interface PanelProps {
  panel: IntervalPanel;
  rows: IntervalFigureProps["rows"];
  left: number;
  top: number;
  width: number;
}

function PanelOf({ panel, rows, left, top, width }: PanelProps) {
  const values = panel.intervals.flatMap((one) => (one ? [one.value, one.low, one.high] : []));
  const points = panel.points?.flat() ?? [];
  const marks = panel.mark === undefined ? [] : [panel.mark];
  const range = panel.range ?? findRange([...values, ...points, ...marks], 0.08);
  const x = makeScale(range, [left, left + width], Math.max(2, width / 70));
  const bottom = top + HEAD + rows.length * ROW;
  return (
    <g>
      <text className={classes.heading} x={left} y={top + 14}>
        {panel.heading}
      </text>
      <g className={classes.grid}>
        {x.ticks.map((tick) => (
          <g key={tick}>
            <line x1={x(tick)} x2={x(tick)} y1={top + HEAD - 6} y2={bottom} />
            <text className={classes.faint} x={x(tick)} y={bottom + 14} textAnchor="middle">
              {formatValue(tick, 4)}
            </text>
          </g>
        ))}
      </g>
      {panel.mark !== undefined && (
        <line
          className={classes.reference}
          x1={x(panel.mark)}
          x2={x(panel.mark)}
          y1={top + HEAD - 6}
          y2={bottom}
        />
      )}
      {rows.map((row, index) => {
        const one = panel.intervals[index];
        const y = top + HEAD + (index + 0.5) * ROW;
        return (
          <g key={row.name}>
            {(panel.points?.[index] ?? []).map((value, i) => (
              <circle
                // biome-ignore lint/suspicious/noArrayIndexKey: seeds may have equal scores
                key={i}
                cx={x(value)}
                cy={y}
                r={3}
                style={{ fill: "none", stroke: row.color, strokeOpacity: 0.7 }}
              />
            ))}
            {one && <Bar one={one} x={x} y={y} color={row.color} />}
          </g>
        );
      })}
    </g>
  );
}

interface BarProps {
  one: Interval;
  x: (value: number) => number;
  y: number;
  color: string;
}

function Bar({ one, x, y, color }: BarProps) {
  const { low, high } = one;
  const text =
    low === null || high === null
      ? formatValue(one.value, 4)
      : `${formatValue(one.value, 4)} [${formatValue(low, 4)}, ${formatValue(high, 4)}]`;
  return (
    <g>
      <title>{text}</title>
      {low !== null && high !== null && (
        <rect
          x={x(low)}
          y={y - 6}
          width={Math.max(1, x(high) - x(low))}
          height={12}
          style={{ fill: color, fillOpacity: 0.45 }}
        />
      )}
      <line
        x1={x(one.value)}
        x2={x(one.value)}
        y1={y - 8}
        y2={y + 8}
        style={{ stroke: color, strokeWidth: 3 }}
      />
    </g>
  );
}

function cut(text: string, most: number): string {
  const room = Math.max(6, Math.floor(most) - 1);
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}
