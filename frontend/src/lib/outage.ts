/** Failures that pass by themselves: what was asked for is asked for again until it is answered. */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 5_000;

/** Whether asking again may help: the server was not reached (0), asked for patience, or failed. */
export function isPassing(error: unknown): boolean {
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === "number" && (status === 0 || status === 429 || status >= 500);
}

/** Milliseconds until the next try, after `failures` in a row (from 0). */
export function delayOf(failures: number): number {
  return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
}

interface Asked<Problem> {
  error: Problem | null;
  failureReason: Problem | null;
}

/** What went wrong with a query, also while it is repeated. */
export function problemOf<Problem>(query: Asked<Problem>): Problem | null {
  return query.error ?? query.failureReason;
}
