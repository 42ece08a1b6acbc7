import { useElementSize } from "@mantine/hooks";
import { useId, useState } from "react";
import { formatValue } from "@/lib/format";
import classes from "./StackedBars.module.css";

export interface BarPart {
  label: string;
  color: string;
  /** Drawn with stripes: what should be little. */
  hatched?: boolean;
}

export interface Bar {
  key: string;
  /** Shown below the bar and as the heading of its tooltip. */
  label: string;
  /** One value for each part, from the bottom to the top. */
  values: readonly number[];
  /** Why there are no values; drawn as a place that is left open. */
  unknown?: string;
}

interface StackedBarsProps {
  label: string;
  bars: readonly Bar[];
  parts: readonly BarPart[];
  unit: string;
  testId: string;
  height?: number;
}

const AXIS = 46;
const RIGHT = 14;
const BOTTOM = 22;
const TOP = 8;
const LABEL_SPACE = 62;

/** Bars that are stacked from parts, with a legend, a tooltip and an axis from 0. */
export function StackedBars({ label, bars, parts, unit, testId, height = 220 }: StackedBarsProps) {
  const { ref, width } = useElementSize();
  const [hovered, setHovered] = useState<number | null>(null);
  const id = useId();
  const inner = Math.max(0, width - AXIS - RIGHT);
  const step = bars.length > 0 ? inner / bars.length : 0;
  const sums = bars.map((bar) => bar.values.reduce((all, one) => all + one, 0));
  const ticks = chooseTicks(Math.max(0, ...sums));
  const highest = ticks.at(-1) ?? 1;
  const toY = (value: number) => TOP + (1 - value / highest) * (height - TOP - BOTTOM);
  const every = Math.max(1, Math.ceil(LABEL_SPACE / Math.max(1, step)));
  const shown = hovered === null ? undefined : bars[hovered];
  return (
    <div className={classes.chart} data-testid={testId}>
      <ul className={classes.legend}>
        {parts.map((part) => (
          <li key={part.label}>
            <i style={{ background: part.color }} data-hatched={part.hatched || undefined} />
            {part.label}
          </li>
        ))}
      </ul>
      <div ref={ref} className={classes.area} style={{ height }}>
        <svg width={width} height={height} role="img" aria-label={label}>
          <Patterns id={id} parts={parts} />
          {ticks.map((tick) => (
            <g key={tick} className={classes.grid}>
              <line x1={AXIS} x2={width - RIGHT} y1={toY(tick)} y2={toY(tick)} />
              <text x={AXIS - 8} y={toY(tick)} textAnchor="end" dominantBaseline="middle">
                {formatValue(tick, 4)}
              </text>
            </g>
          ))}
          {bars.map((bar, i) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the table below has the numbers
            <g
              key={bar.key}
              onMouseEnter={() => setHovered(i)}
              onMouseLeave={() => setHovered(null)}
            >
              <rect
                className={classes.column}
                x={AXIS + i * step}
                y={TOP}
                width={step}
                height={height - TOP - BOTTOM}
                data-hovered={hovered === i || undefined}
              />
              {bar.unknown !== undefined && (
                <rect
                  className={classes.unknown}
                  x={AXIS + i * step + step * 0.14}
                  y={toY(highest * 0.06)}
                  width={step * 0.72}
                  height={height - BOTTOM - toY(highest * 0.06)}
                />
              )}
              {stack(bar.values).map(([low, high], part) =>
                high > low ? (
                  <rect
                    key={parts[part]?.label}
                    x={AXIS + i * step + step * 0.14}
                    y={toY(high)}
                    width={step * 0.72}
                    height={Math.max(0.5, toY(low) - toY(high))}
                    fill={parts[part]?.hatched ? `url(#${id}-${part})` : parts[part]?.color}
                  />
                ) : null,
              )}
              {i % every === 0 && (
                <text className={classes.tick} x={AXIS + (i + 0.5) * step} y={height - 6}>
                  {bar.label}
                </text>
              )}
            </g>
          ))}
        </svg>
        {shown && hovered !== null && (
          <Tooltip
            bar={shown}
            parts={parts}
            unit={unit}
            at={AXIS + (hovered + 0.5) * step}
            width={width}
          />
        )}
      </div>
    </div>
  );
}

function Patterns({ id, parts }: { id: string; parts: readonly BarPart[] }) {
  return (
    <defs>
      {parts.map((part, i) =>
        part.hatched ? (
          <pattern
            key={part.label}
            id={`${id}-${i}`}
            width={6}
            height={6}
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect width={6} height={6} style={{ fill: part.color, opacity: 0.35 }} />
            <rect width={3} height={6} style={{ fill: part.color }} />
          </pattern>
        ) : null,
      )}
    </defs>
  );
}

interface TooltipProps {
  bar: Bar;
  parts: readonly BarPart[];
  unit: string;
  at: number;
  width: number;
}

function Tooltip({ bar, parts, unit, at, width }: TooltipProps) {
  const side = at > width / 2 ? { right: width - at + 12 } : { left: at + 12 };
  return (
    <div className={classes.tooltip} style={side}>
      <strong>{bar.label}</strong>
      {bar.unknown !== undefined && <small>{bar.unknown}</small>}
      {[...parts.keys()].reverse().map((i) => {
        const value = bar.values[i] ?? 0;
        return value > 0 ? (
          <span key={parts[i]?.label}>
            <i style={{ background: parts[i]?.color }} />
            <em>{parts[i]?.label}</em>
            <b>
              {formatValue(value, 3)} {unit}
            </b>
          </span>
        ) : null;
      })}
    </div>
  );
}

/** The lower and the upper end of each part. */
function stack(values: readonly number[]): [number, number][] {
  let low = 0;
  return values.map((value) => {
    low += value;
    return [low - value, low];
  });
}

/** Three to six round numbers from 0 to at least the highest value. */
export function chooseTicks(highest: number): number[] {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / 4;
  const scale = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * scale).find((one) => one >= rough) ?? rough;
  const count = Math.ceil(highest / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}
