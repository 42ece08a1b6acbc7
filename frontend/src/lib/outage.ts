/** Transient failures, after which a request is repeated until it succeeds. */
import type { Query, QueryClient } from "@tanstack/react-query";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 5_000;
/** The longest time for which a page waits because a server asked for it. */
const LONGEST_WAIT = 60_000;

interface Refused {
  status?: unknown;
  code?: unknown;
  /** Seconds for which the server asked to wait. */
  retryAfter?: number | null;
}

/**
 * Whether a retry may succeed: the server was not reached (0), limits the rate (429), or failed. A
 * request that the database could not answer within its limit would end so again.
 */
export function isTransient(error: unknown): boolean {
  const { status, code } = (error as Refused | null) ?? {};
  if (code === "statement_deadline") return false;
  return typeof status === "number" && (status === 0 || status === 429 || status >= 500);
}

/**
 * Milliseconds until the next retry, after `failures` in a row (from 0): no less than the server
 * asked for.
 */
export function computeRetryDelay(failures: number, error: unknown): number {
  const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
  return Math.max(delay, computeWait((error as Refused | null)?.retryAfter));
}

/**
 * Milliseconds to wait where a server asked for a number of seconds; 0 for `null`. A random part of
 * up to a quarter is added, so that requests that were refused together are not repeated together.
 */
export function computeWait(seconds: number | null | undefined): number {
  return Math.min(LONGEST_WAIT, (seconds ?? 0) * 1_000 * (1 + Math.random() / 4));
}

/** Seconds of the header `Retry-After`, which holds seconds or a date; `null` without one. */
export function readRetryAfter(headers: Headers): number | null {
  const text = headers.get("retry-after")?.trim();
  if (!text) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}

/**
 * Repeats at once the queries that failed, wait for their next try, or are under way and may never
 * be answered. `refetch` leaves a query without data waiting.
 */
export async function repeatUnanswered(client: QueryClient): Promise<void> {
  const unanswered = new Set(client.getQueryCache().findAll().filter(isUnanswered));
  const which = { predicate: (query: Query) => unanswered.has(query) };
  await client.cancelQueries(which);
  void client.refetchQueries({ ...which, type: "active" });
}

function isUnanswered({ state }: Query): boolean {
  return state.status === "error" || state.fetchStatus === "fetching";
}

interface FailedQuery<Problem> {
  error: Problem | null;
  failureReason: Problem | null;
}

/** The error of a query, also while the query is repeated. */
export function findQueryError<Problem>(query: FailedQuery<Problem>): Problem | null {
  return query.error ?? query.failureReason;
}
