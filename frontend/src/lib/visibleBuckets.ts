const FEWEST = 400;
const MOST = 1500;

/**
 * The number of buckets to ask for: one per pixel of the window's width, of which the server answers
 * half to all.
 */
export function countVisibleBuckets(): number {
  return Math.min(MOST, Math.max(FEWEST, Math.round(window.innerWidth)));
}
