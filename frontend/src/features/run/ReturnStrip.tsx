import { formatPlural, formatValue, toNumber } from "@/lib/format";
import classes from "./EvaluationDrawer.module.css";

const WIDTH = 600;
const HEIGHT = 74;
const EDGE = 12;
const ROWS = 5;
/** Height of the axis line from the top. */
const BASE = 52;

interface ReturnStripProps {
  returns: readonly number[];
  mean: number | string;
  color: string;
  /** Episode that stands out. */
  marked: number | null;
}

/** The return of every episode on one line, with the mean; equal ones lie above each other. */
export function ReturnStrip({ returns, mean, color, marked }: ReturnStripProps) {
  const known = returns.filter(Number.isFinite);
  if (known.length === 0) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const toX = (value: number) =>
    high > low ? EDGE + ((value - low) / (high - low)) * (WIDTH - 2 * EDGE) : WIDTH / 2;
  const placed = stackDots(returns, toX);
  const middle = toNumber(mean);
  return (
    <svg
      className={classes.strip}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${formatPlural(known.length, "episode return")} from ${formatValue(low)} to ${formatValue(high)}`}
    >
      <line x1={EDGE} x2={WIDTH - EDGE} y1={BASE} y2={BASE} stroke="var(--line-strong)" />
      {Number.isFinite(middle) && (
        <line x1={toX(middle)} x2={toX(middle)} y1={4} y2={BASE + 4} stroke="var(--ink-2)" />
      )}
      {placed.map(({ episode, x, row }) => (
        <circle
          key={episode}
          cx={x}
          cy={BASE - 7 - row * 8}
          r={episode === marked ? 5 : 4}
          fill={color}
          fillOpacity={episode === marked ? 1 : 0.5}
          stroke={episode === marked ? "var(--ink)" : "none"}
        >
          <title>{`episode ${episode}: ${formatValue(returns[episode])}`}</title>
        </circle>
      ))}
      <text x={EDGE} y={HEIGHT - 6}>
        {formatValue(low)}
      </text>
      {high > low && (
        <text x={WIDTH - EDGE} y={HEIGHT - 6} textAnchor="end">
          {formatValue(high)}
        </text>
      )}
    </svg>
  );
}

interface Dot {
  episode: number;
  x: number;
  row: number;
}

/** Puts dots that would overlap into rows above each other, as far as there are rows. */
function stackDots(returns: readonly number[], toX: (value: number) => number): Dot[] {
  const taken = Array.from({ length: ROWS }, () => Number.NEGATIVE_INFINITY);
  const dots = returns
    .map((value, episode) => ({ episode, value }))
    .filter((one) => Number.isFinite(one.value))
    .sort((a, b) => a.value - b.value);
  return dots.map(({ episode, value }, i) => {
    const x = toX(value);
    const free = taken.findIndex((before) => x - before >= 8);
    const row = free < 0 ? i % ROWS : free;
    taken[row] = x;
    return { episode, x, row };
  });
}
