import { formatValue } from "@/lib/format";
import classes from "./Figures.module.css";
import type { Scale } from "./scale";

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface AxesProps {
  box: Box;
  x: Scale;
  y?: Scale;
  xLabel: string;
  yLabel?: string;
  xFormat?: (value: number) => string;
  yFormat?: (value: number) => string;
}

const short = (value: number) => formatValue(value, 4);

/** Grid lines with labels at the left and below, and the names of both axes. */
export function Axes({ box, x, y, xLabel, yLabel, xFormat = short, yFormat = short }: AxesProps) {
  return (
    <g className={classes.grid}>
      {x.ticks.map((tick) => (
        <g key={`x ${tick}`}>
          <line x1={x(tick)} x2={x(tick)} y1={box.top} y2={box.bottom} />
          <text className={classes.faint} x={x(tick)} y={box.bottom + 15} textAnchor="middle">
            {xFormat(tick)}
          </text>
        </g>
      ))}
      {y?.ticks.map((tick) => (
        <g key={`y ${tick}`}>
          <line x1={box.left} x2={box.right} y1={y(tick)} y2={y(tick)} />
          <text
            className={classes.faint}
            x={box.left - 7}
            y={y(tick)}
            textAnchor="end"
            dominantBaseline="middle"
          >
            {yFormat(tick)}
          </text>
        </g>
      ))}
      <text x={(box.left + box.right) / 2} y={box.bottom + 32} textAnchor="middle">
        {xLabel}
      </text>
      {yLabel && (
        <text
          transform={`translate(${box.left - 44} ${(box.top + box.bottom) / 2}) rotate(-90)`}
          textAnchor="middle"
        >
          {yLabel}
        </text>
      )}
    </g>
  );
}
