/** One curve as a chart draws it: columns of equal length over an ascending x. */
import type { SeriesResult } from "@/api/types";
import type { Axis, SeriesRing } from "./seriesRing";

export interface Curve {
  x: number[];
  y: (number | null)[];
  /** Minimum and maximum of a bucket; equal to `y` where the point is exact. */
  low: (number | null)[];
  high: (number | null)[];
  /** Superseded values; `null` unless the view asks for them. */
  superseded: (number | null)[];
  /** Number of points that the curve stands for: exact ones and those summarised in buckets. */
  points: number;
}

/** The visible range of the curves on a page, and the counter of their x axis. */
export interface View {
  axis: Axis | "relative";
  /** Wall time of the run's first point, for the relative axis; `undefined` until it is known. */
  origin?: number | undefined;
  superseded: boolean;
  start?: number | undefined;
  end?: number | undefined;
}

/** The filled buckets of one series. */
export interface Buckets {
  x: number[];
  mean: number[];
  min: number[];
  max: number[];
  points: number;
}

export function createEmptyCurve(): Curve {
  return { x: [], y: [], low: [], high: [], superseded: [], points: 0 };
}

/** The buckets of a series that hold points. */
export function selectFilledBuckets(
  series: SeriesResult["series"][number],
  grid: readonly number[],
): Buckets {
  const buckets: Buckets = { x: [], mean: [], min: [], max: [], points: series.points };
  for (let i = 0; i < grid.length; i += 1) {
    const mean = series.mean[i];
    if (mean === null || mean === undefined) continue;
    buckets.x.push(grid[i] ?? 0);
    buckets.mean.push(mean);
    buckets.min.push(series.min[i] ?? mean);
    buckets.max.push(series.max[i] ?? mean);
  }
  return buckets;
}

export function addBuckets(
  curve: Curve,
  buckets: Buckets | undefined,
  column: "y" | "superseded",
): void {
  if (buckets === undefined) return;
  const counts = column === "y";
  for (let i = 0; i < buckets.x.length; i += 1) {
    curve.x.push(buckets.x[i] as number);
    curve.y.push(counts ? (buckets.mean[i] as number) : null);
    curve.low.push(counts ? (buckets.min[i] as number) : null);
    curve.high.push(counts ? (buckets.max[i] as number) : null);
    curve.superseded.push(counts ? null : (buckets.mean[i] as number));
  }
  if (counts) curve.points += buckets.points;
}

/** Adds the exact points of a ring; superseded points are added only if the view asks for them. */
export function addPoints(
  curve: Curve,
  ring: SeriesRing,
  view: View,
  isSuperseded: (index: number) => boolean,
): void {
  const { axis, origin = Number.NaN } = view;
  if (axis === "relative" && Number.isNaN(origin)) return;
  for (let i = 0; i < ring.length; i += 1) {
    const superseded = isSuperseded(i);
    if (superseded && !view.superseded) continue;
    const value = ring.at("value", i);
    const drawn = Number.isFinite(value) ? value : null;
    const counted = superseded ? null : drawn;
    curve.x.push(axis === "relative" ? ring.at("wall", i) - origin : ring.at(axis, i));
    curve.y.push(counted);
    curve.low.push(counted);
    curve.high.push(counted);
    curve.superseded.push(superseded ? drawn : null);
    if (!superseded) curve.points += 1;
  }
}

/** Sorts points by x, since charts need ascending x and points may arrive late. */
export function sortByX(curve: Curve): Curve {
  const { x } = curve;
  if (x.every((value, i) => i === 0 || (x[i - 1] as number) <= value)) return curve;
  return pickRows(
    curve,
    x.map((_, i) => i).sort((a, b) => (x[a] as number) - (x[b] as number) || a - b),
  );
}

/** The part of a curve within the view's range. */
export function clip(curve: Curve, { start, end }: View): Curve {
  if (start === undefined && end === undefined) return curve;
  const inside = (x: number) =>
    (start === undefined || x >= start) && (end === undefined || x <= end);
  return pickRows(
    curve,
    [...curve.x.keys()].filter((i) => inside(curve.x[i] as number)),
  );
}

function pickRows(curve: Curve, rows: readonly number[]): Curve {
  const pick = <T>(column: readonly T[]) => rows.map((i) => column[i] as T);
  const { x, y, low, high, superseded, points } = curve;
  return {
    x: pick(x),
    y: pick(y),
    low: pick(low),
    high: pick(high),
    superseded: pick(superseded),
    points,
  };
}
