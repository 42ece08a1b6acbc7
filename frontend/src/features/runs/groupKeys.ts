/** How runs are grouped: the metric, the order and the colours of groups. */
import type { Run, RunGroup } from "@/api/types";
import { chooseGroupColor, chooseMemberColor, type Scheme } from "@/lib/color";
import { readOrder } from "@/lib/sortOrder";
import { describeKey } from "./columnKeys";
import { readCell } from "./runCells";

export const DEFAULT_METRIC = "evaluation/mean.last";
const COUNTERS = new Set(["env_step", "update", "episode", "seed"]);
/** Shades that the seeds of a group share among them. */
const SHADES = 6;

/** The key whose mean the groups show: the first one of the order, where it is a number. */
export function chooseMetric(sort: string): string {
  const key = readOrder(sort)[0]?.id ?? "";
  const { kind } = describeKey(key);
  return kind === "series" || kind === "threshold" || COUNTERS.has(key) ? key : DEFAULT_METRIC;
}

/** The order of the groups that fits the first key of the order of the runs. */
export function chooseGroupSort(sort: string, groupBy: readonly string[]): string {
  const key = readOrder(sort)[0]?.id ?? "";
  const sign = sort.startsWith("-") ? "-" : "";
  if (key === chooseMetric(sort)) return `${sign}mean`;
  return key === "name" || groupBy.includes(key) ? `${sign}name` : "-mean";
}

/** Identifies a group by the values that its runs share. */
export function identifyGroup(by: Readonly<Record<string, unknown>>): string {
  const values = Object.entries(by);
  // An experiment has its colour on every page, also where the runs are grouped by it.
  return values.length === 1 && values[0]?.[0] === "experiment"
    ? String(values[0][1])
    : JSON.stringify(values);
}

/** The group of a run: that of the keys, or its experiment without any. */
export function identifyGroupOf(run: Run, groupBy: readonly string[]): string {
  if (groupBy.length === 0) return run.experiment_id;
  return identifyGroup(Object.fromEntries(groupBy.map((key) => [key, readCell(run, key) ?? null])));
}

/** The colour of a run: the hue of its group, in a shade of its seed. */
export function chooseRunColor(run: Run, groupBy: readonly string[], scheme: Scheme): string {
  const shade = (run.seed + run.replicate) % SHADES;
  return chooseMemberColor(identifyGroupOf(run, groupBy), shade, SHADES, scheme);
}

export function chooseColorOfGroup(group: RunGroup, scheme: Scheme): string {
  return chooseGroupColor(identifyGroup(group.by), scheme);
}

/** The values of a group in words: `dqn · 0.001`. */
export function nameGroup(group: RunGroup): string {
  const values = Object.values(group.by).map((value) =>
    value === null || value === undefined ? "none" : String(value),
  );
  return values.join(" · ") || "all runs";
}
