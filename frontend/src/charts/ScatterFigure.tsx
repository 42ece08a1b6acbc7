import { useElementSize } from "@mantine/hooks";
import { Axes } from "./Axes";
import classes from "./Figures.module.css";
import { findRange, makeScale, type Scale } from "./scale";

export interface ScatterPoint {
  key: string;
  /** A number; for categories, the position in `categories`. */
  x: number;
  y: number;
  color: string;
  title: string;
}

interface ScatterFigureProps {
  label: string;
  points: readonly ScatterPoint[];
  xLabel: string;
  yLabel: string;
  /** Names of the places on x, where x has no order. */
  categories?: readonly string[];
  /** Whether x is drawn on a logarithmic scale; all x must be above 0. */
  log?: boolean;
  height?: number;
}

const BOX = { left: 62, top: 12, right: 16, bottom: 44 };

/** Points over numbers or categories. */
export function ScatterFigure(props: ScatterFigureProps) {
  const { label, points, xLabel, yLabel, categories, log = false, height = 300 } = props;
  const { ref, width } = useElementSize();
  const box = {
    left: BOX.left,
    right: Math.max(BOX.left + 40, width - BOX.right),
    top: BOX.top,
    bottom: height - BOX.bottom,
  };
  const x = chooseX(points, [box.left, box.right], categories, log);
  const y = makeScale(findRange(points.map((one) => one.y)), [box.bottom, box.top], height / 55);
  return (
    <div className={classes.host} ref={ref}>
      <svg role="img" aria-label={label} height={height}>
        <Axes
          box={box}
          x={x}
          y={y}
          xLabel={log ? `${xLabel} (log scale)` : xLabel}
          yLabel={yLabel}
          {...(categories && { xFormat: (at: number) => categories[at] ?? "" })}
        />
        {points.map((one) => (
          <circle
            key={one.key}
            cx={x(one.x)}
            cy={y(one.y)}
            r={4.5}
            style={{ fill: one.color, fillOpacity: 0.75, stroke: one.color }}
          >
            <title>{one.title}</title>
          </circle>
        ))}
      </svg>
    </div>
  );
}

function chooseX(
  points: readonly ScatterPoint[],
  pixels: readonly [number, number],
  categories: readonly string[] | undefined,
  log: boolean,
): Scale {
  const values = points.map((one) => one.x);
  if (categories !== undefined) {
    const scale = makeScale([-0.5, Math.max(1, categories.length) - 0.5], pixels);
    return Object.assign(scale, { ticks: [...categories.keys()] });
  }
  if (!log) return makeScale(findRange(values), pixels, (pixels[1] - pixels[0]) / 90);
  const linear = makeScale(findRange(values.map(Math.log10)), pixels);
  const powers = Array.from(
    { length: Math.floor(linear.high) - Math.ceil(linear.low) + 1 },
    (_, i) => 10 ** (Math.ceil(linear.low) + i),
  );
  const ticks = powers.length > 0 ? powers : [...new Set(values)];
  return Object.assign((value: number) => linear(Math.log10(value)), {
    ticks,
    low: 10 ** linear.low,
    high: 10 ** linear.high,
  });
}
