/** Smoothing of drawn curves; stored values do not change. */

export type Column = ArrayLike<number | null>;

/**
 * Debiased exponential moving average: `weight` 0 leaves the curve as it is, 0.99 is very smooth.
 *
 * Gaps and non-finite values stay gaps and do not enter the average (Adam's bias correction keeps
 * the start unbiased).
 */
export function smooth(values: Column, weight: number): (number | null)[] {
  const result = new Array<number | null>(values.length);
  let average = 0;
  let remaining = 1;
  for (let i = 0; i < values.length; i += 1) {
    const current = values[i];
    if (current === null || current === undefined || !Number.isFinite(current)) {
      result[i] = null;
      continue;
    }
    average = weight * average + (1 - weight) * current;
    remaining *= weight;
    result[i] = weight <= 0 ? current : average / (1 - remaining);
  }
  return result;
}
