/** Limits of wall time, typed in hours. */

/** The text of a limit in hours, from its seconds; empty for no limit. */
export function formatHours(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined
    ? ""
    : String(Number((seconds / 3600).toFixed(4)));
}

/** Seconds of typed hours; `null` for an empty field, `NaN` for text that is no positive number. */
export function parseHours(hours: string): number | null {
  const typed = hours.trim().replace(",", ".");
  if (typed === "") return null;
  const number = /^\d+(\.\d+)?$/.test(typed) ? Number(typed) : Number.NaN;
  return number > 0 ? Math.max(1, Math.round(number * 3600)) : Number.NaN;
}
