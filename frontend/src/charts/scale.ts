/** Linear scales of drawings. */

export interface Scale {
  (value: number): number;
  ticks: readonly number[];
  low: number;
  high: number;
}

/** Round numbers within a range, about `count` of them. */
export function chooseTicks(low: number, high: number, count = 5): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

/** The lowest and the highest of some numbers with room at both ends; `[0, 1]` without any. */
export function findRange(values: Iterable<number | null>, room = 0.05): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const margin = (high - low || Math.abs(high) || 1) * room;
  return [low - margin, high + margin];
}

/** A scale from a range of values to a range of pixels. */
export function makeScale(
  [low, high]: readonly [number, number],
  [start, end]: readonly [number, number],
  count = 5,
): Scale {
  const span = high - low || 1;
  const scale = (value: number) => start + ((value - low) / span) * (end - start);
  return Object.assign(scale, { ticks: chooseTicks(low, high, count), low, high });
}
