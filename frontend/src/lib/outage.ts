/** Transient failures, after which a request is repeated until it succeeds. */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 5_000;

/**
 * Whether a retry may succeed: the server was not reached (0), limits the rate (429), or failed.
 */
export function isTransient(error: unknown): boolean {
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === "number" && (status === 0 || status === 429 || status >= 500);
}

/** Milliseconds until the next retry, after `failures` in a row (from 0). */
export function retryDelayOf(failures: number): number {
  return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
}

interface FailedQuery<Problem> {
  error: Problem | null;
  failureReason: Problem | null;
}

/** The error of a query, also while the query is repeated. */
export function problemOf<Problem>(query: FailedQuery<Problem>): Problem | null {
  return query.error ?? query.failureReason;
}
