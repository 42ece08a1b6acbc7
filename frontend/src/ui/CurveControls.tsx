import { Slider } from "@mantine/core";
import { useId } from "react";
import classes from "./CurveControls.module.css";
import { LinkButton } from "./LinkButton";

const SMOOTHING = "Debiased exponential moving average of what is drawn; stored values stay";

interface SmoothingProps {
  /** Weight of the values before, from 0 to below 1. */
  value: number;
  onChange(value: number | undefined): void;
}

/** Chooses how much curves are smoothed. */
export function Smoothing({ value, onChange }: SmoothingProps) {
  const id = useId();
  return (
    <div className={classes.smooth} title={SMOOTHING}>
      <span id={id}>Smoothing</span>
      <Slider
        aria-labelledby={id}
        thumbLabel="Smoothing"
        w={100}
        min={0}
        max={0.99}
        step={0.01}
        label={null}
        value={value}
        onChange={(next) => onChange(next === 0 ? undefined : next)}
      />
      <span className={classes.weight}>{value.toFixed(2)}</span>
    </div>
  );
}

interface ResetZoomProps {
  /** The range that is shown; undefined ends are those of the data. */
  range: { start?: number | undefined; end?: number | undefined };
  onReset(range: { start: undefined; end: undefined }): void;
}

/** Shows the whole curves again, where a part of them is shown. */
export function ResetZoom({ range, onReset }: ResetZoomProps) {
  if (range.start === undefined && range.end === undefined) return null;
  return (
    <LinkButton onClick={() => onReset({ start: undefined, end: undefined })}>
      Reset zoom
    </LinkButton>
  );
}
