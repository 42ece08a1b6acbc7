/** Words for the time at which a waiting job is expected to start. */
import { formatDuration, formatMoment, formatPercent, formatPlural } from "./format";

/** The estimate of a waiting job, as the API sends it. */
export interface StartEstimate {
  earliest: string | null;
  median: string | null;
  latest: string | null;
  /** Why there is no estimate. */
  unknown: string | null;
}

const DAY_MS = 86_400_000;

/** The time of day, with the date where it is another day: `14:20`, `Nov 26, 14:20`. */
export function formatTimeOfStart(iso: string, now = Date.now()): string {
  const at = new Date(iso);
  const time = at.toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === new Date(now).toDateString()) return time;
  const far = Math.abs(at.getTime() - now) > 300 * DAY_MS;
  const day = at.toLocaleDateString("en-US", {
    month: "short",
    day: "numeric",
    ...(far ? { year: "numeric" } : {}),
  });
  return `${day}, ${time}`;
}

/** One sentence: `starts at about 14:20, between 14:05 and 15:10`. */
export function formatStart(estimate: StartEstimate | null | undefined, now = Date.now()): string {
  const { earliest, median, latest } = estimate ?? {};
  if (!earliest || !median || !latest) return estimate?.unknown ?? "no estimate of its start yet";
  if (Date.parse(latest) - now < 60_000) return "starts within a minute";
  const [first, middle, last] = [earliest, median, latest].map((one) =>
    formatTimeOfStart(one, now),
  );
  return first === last
    ? `starts at about ${middle}`
    : `starts at about ${middle}, between ${first} and ${last}`;
}

/** The interval alone, for a cell: `14:05–15:10`; `null` where there is no estimate. */
export function formatStartShort(
  estimate: StartEstimate | null | undefined,
  now = Date.now(),
): string | null {
  const { earliest, latest } = estimate ?? {};
  if (!earliest || !latest) return null;
  if (Date.parse(latest) - now < 60_000) return "now";
  const [first, last] = [formatTimeOfStart(earliest, now), formatTimeOfStart(latest, now)];
  return first === last ? first : `${first} – ${last}`;
}

/** How well earlier starts were estimated; `null` before there are any. */
export function describeAccuracy(
  found:
    | { starts: number; coverage: number | null; median_error_seconds: number | null }
    | undefined,
): string | null {
  if (!found || found.starts === 0 || found.coverage === null) return null;
  const error = formatDuration(found.median_error_seconds);
  return `${formatPercent(found.coverage)} of ${formatPlural(found.starts, "earlier start")} lay within their estimate, median error ${error}`;
}

/** What the estimate means, with its exact times. */
export function hintStart(estimate: StartEstimate | null | undefined): string {
  if (!estimate?.earliest || !estimate.latest) return estimate?.unknown ?? "";
  return [
    "Eight of ten jobs start within the interval of their estimate.",
    `${formatMoment(estimate.earliest)} to ${formatMoment(estimate.latest)}`,
  ].join("\n");
}
