/** The range of y that leaves out outliers. */

const SHARE = 0.02;
const MARGIN = 0.08;
/** Number of values that the percentiles are taken from. */
const MOST_VALUES = 20_000;

/**
 * The range between the 2nd and the 98th percentile of all values, with a margin; `null` where it
 * has no extent.
 */
export function computeInnerRange(
  columns: readonly (readonly (number | null | undefined)[])[],
): readonly [number, number] | null {
  const all = columns.reduce((sum, column) => sum + column.length, 0);
  const step = Math.max(1, Math.ceil(all / MOST_VALUES));
  const found: number[] = [];
  for (const column of columns)
    for (let i = 0; i < column.length; i += step) {
      const y = column[i];
      if (typeof y === "number" && Number.isFinite(y)) found.push(y);
    }
  if (found.length === 0) return null;
  const values = Float64Array.from(found).sort();
  const at = (share: number) => values[Math.round(share * (values.length - 1))] as number;
  const [low, high] = [at(SHARE), at(1 - SHARE)];
  if (!(high > low)) return null;
  const margin = low > 0 ? Math.min(MARGIN * (high - low), low / 2) : MARGIN * (high - low);
  return [low - margin, high + MARGIN * (high - low)];
}
