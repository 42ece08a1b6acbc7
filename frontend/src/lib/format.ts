/** Text for numbers, times and sizes. A score shows no more digits than its spread allows. */

export type Numeric = number | "NaN" | "Infinity" | "-Infinity";

const DASH = "–";
const MINUS = "−";

/** Reads a number of the API, which writes the non-finite ones as strings. */
export function toNumber(value: number | string | null | undefined): number {
  if (value === null || value === undefined) return Number.NaN;
  return typeof value === "number" ? value : Number(value);
}

function replaceHyphen(text: string): string {
  return text.replace(/^-/, MINUS);
}

/** Formats an integer with groups of three digits: `150,000`. */
export function formatCount(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value)
    ? DASH
    : replaceHyphen(value.toLocaleString("en-US"));
}

/** Formats a step count for axes and dense cells: `150k`, `1.25M`. */
export function formatCompact(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  const [scale, unit] =
    size >= 1e9 ? [1e9, "B"] : size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
  const scaled = value / scale;
  return replaceHyphen(`${Number.parseFloat(scaled.toPrecision(unit === "" ? 6 : 4))}${unit}`);
}

/** Formats a value in at most `digits` significant digits; other values are `NaN`, `∞` or `−∞`. */
export function formatValue(x: number | string | null | undefined, digits = 4): string {
  if (x === null || x === undefined) return DASH;
  const number = toNumber(x);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : `${MINUS}∞`;
  const size = Math.abs(number);
  if (number !== 0 && (size < 1e-4 || size >= 1e7)) return replaceHyphen(number.toExponential(2));
  if (size >= 10 ** digits) return replaceHyphen(Math.round(number).toLocaleString("en-US"));
  return replaceHyphen(String(Number.parseFloat(number.toPrecision(digits))));
}

/** Number of decimals of a value with this spread: two significant digits of the spread. */
function countDecimals(spread: number): number {
  return Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(spread))));
}

/**
 * A mean in the digits that its spread allows: `482.3` beside `± 1.2`, `482` beside `± 120`.
 * Without a spread, or with a spread of 0, in four significant digits.
 */
export function formatScore(
  mean: number | string | null | undefined,
  spread: number | string | null | undefined,
): string {
  const [number, width] = [toNumber(mean), toNumber(spread)];
  if (!Number.isFinite(number) || !Number.isFinite(width) || width <= 0) return formatValue(mean);
  const shown = replaceHyphen(number.toFixed(countDecimals(width)));
  return /[1-9]/.test(shown) ? shown : shown.replace(MINUS, "");
}

/** A spread in two significant digits, also where the second one is 0: `3.0`, `210`. */
export function formatSpread(spread: number | string | null | undefined): string {
  const width = toNumber(spread);
  return width >= 1e-4 && width < 1e7
    ? width.toFixed(countDecimals(width))
    : formatValue(spread, 2);
}

/** Formats a duration: `42 s`, `3 min 05 s`, `2 h 14 min`, `3 d 4 h`. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  const rounded = Math.max(0, Math.round(seconds));
  const two = (part: number) => String(part).padStart(2, "0");
  if (rounded < 60) return `${rounded} s`;
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${two(rounded % 60)} s`;
  if (rounded < 86_400)
    return `${Math.floor(rounded / 3600)} h ${two(Math.floor((rounded % 3600) / 60))} min`;
  return `${Math.floor(rounded / 86_400)} d ${Math.floor((rounded % 86_400) / 3600)} h`;
}

/** Formats the time since an event: `now`, `12 s ago`, `5 min ago`, `3 h ago`, `2 d ago`, then the date. */
export function formatAge(iso: string | null | undefined, now = Date.now()): string {
  if (!iso) return DASH;
  const seconds = (now - Date.parse(iso)) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 14 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return formatDay(iso);
}

/** Formats a day: `2026-11-21`. */
export function formatDay(iso: string): string {
  return new Date(iso).toLocaleDateString("sv-SE");
}

/** Formats a time in the viewer's zone: `2026-11-21 14:05:09`. */
export function formatMoment(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return DASH;
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? DASH : date.toLocaleString("sv-SE");
}

/** Formats a time of day in the viewer's zone: `14:05:09`. */
export function formatClock(epochSeconds: number): string {
  return new Date(epochSeconds * 1000).toLocaleTimeString("sv-SE");
}

/** The format of x on an axis of curves. */
export function chooseXFormat(axis: string): (x: number) => string {
  return axis === "wall" ? formatClock : axis === "relative" ? formatDuration : formatCompact;
}

/** Formats a number of bytes: `4.2 MiB`. */
export function formatBytes(size: number | null | undefined): string {
  if (size === null || size === undefined || !Number.isFinite(size)) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let scaled = size;
  let unit = 0;
  while (scaled >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? scaled : scaled.toFixed(1)} ${units[unit]}`;
}

/** Formats a share of 1 as a percentage: `63 %`. */
export function formatPercent(fraction: number | null | undefined): string {
  return fraction === null || fraction === undefined ? DASH : `${Math.floor(fraction * 100)} %`;
}

/** Formats a count with its noun in singular or plural: `1 run`, `3 runs`. */
export function formatPlural(n: number, one: string, many = `${one}s`): string {
  return `${formatCount(n)} ${n === 1 ? one : many}`;
}

/** An experiment's ID in its two parts: the slug of its name and the digits of its hash. */
export function splitExperimentId(id: string): { slug: string; hash: string } {
  const dash = id.lastIndexOf("-");
  return dash < 0 ? { slug: id, hash: "" } : { slug: id.slice(0, dash), hash: id.slice(dash + 1) };
}

/** The prefix and the last six characters of an ID. */
export function shortenId(id: string): string {
  const [prefix, rest] = id.split("_");
  return rest === undefined ? id : `${prefix}_…${rest.slice(-6)}`;
}

/** The name of a schedule in words. */
export function nameSchedule(schedule: string): string {
  return schedule.replaceAll("_", " ");
}

/** Returns a cause in words: `user exception`. */
export function nameCause(cause: string): string {
  return cause.replaceAll("_", " ");
}

/** Begins a text with a capital letter. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
