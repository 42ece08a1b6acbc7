/** Begins the key of a threshold in filters, orders and columns. */
export const THRESHOLD_PREFIX = "reached.";

/** The key of a statistic of a threshold's first crossing; its env_step has no name behind it. */
export function writeThresholdKey(
  name: string,
  statistic: "env_step" | "seconds" | "runs" = "env_step",
): string {
  return `${THRESHOLD_PREFIX}${name}${statistic === "env_step" ? "" : `.${statistic}`}`;
}
