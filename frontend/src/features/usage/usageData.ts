/** Turns reports of usage into the bars of charts. */
import type { PoolOccupancy, UsageGroup, UsageReport } from "@/api/types";
import type { Bar, BarPart } from "@/charts/StackedBars";
import { formatCount } from "@/lib/format";
import type { UsageKey } from "./usageSearch";

/** Groups with a colour of their own; all further ones are one part of a bar. */
export const MOST_COLOURS = 7;
const HOUR = 3600;

/** Device-hours in the digits that a table needs: `0.42`, `17.3`, `1,204`. */
export function formatHours(seconds: number): string {
  const hours = seconds / HOUR;
  if (hours === 0) return "0";
  if (hours < 0.01) return "< 0.01";
  return hours >= 100 ? formatCount(Math.round(hours)) : hours.toFixed(hours >= 10 ? 1 : 2);
}

/** Axis labels of the start of a part of a period, in UTC, in which days and weeks begin. */
export function formatStart(iso: string, bucket: string | null): string {
  const date = new Date(iso);
  return bucket === "hour"
    ? `${String(date.getUTCHours()).padStart(2, "0")}:00`
    : date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}

/** The name of a group in tables and legends. */
export function nameGroup(group: UsageGroup, by: UsageKey): string {
  return group[by] ?? (by === "environment" ? "(no environment)" : "–");
}

interface GroupParts {
  bars: Bar[];
  parts: BarPart[];
}

/** Bars of device-hours, stacked by group, with the device-hours lost to failures on top. */
export function buildUsageBars(
  report: UsageReport,
  by: UsageKey,
  colour: (name: string, index: number) => string,
): GroupParts {
  const groups = report.groups as UsageGroup[];
  const shown = groups.slice(0, MOST_COLOURS).filter((group) => group.used_seconds > 0);
  const others = [
    ...groups.slice(MOST_COLOURS),
    ...(report.rest ? [report.rest as UsageGroup] : []),
  ].filter((group) => group.used_seconds > 0);
  const stacks = [
    ...shown.map((group, index) => ({
      part: { label: nameGroup(group, by), color: colour(nameGroup(group, by), index) },
      values: sum([group], report.starts, "used_seconds"),
    })),
    ...(others.length > 0
      ? [
          {
            part: { label: "others", color: "var(--line-strong)" },
            values: sum(others, report.starts, "used_seconds"),
          },
        ]
      : []),
    ...(report.lost_seconds > 0
      ? [
          {
            part: { label: "lost", color: "var(--bad)", hatched: true },
            values: sum(
              [...groups, ...(report.rest ? [report.rest as UsageGroup] : [])],
              report.starts,
              "lost_seconds",
            ),
          },
        ]
      : []),
  ];
  return {
    parts: stacks.map(({ part }) => part),
    bars: report.starts.map((start, i) => ({
      key: start,
      label: formatStart(start, report.bucket),
      values: stacks.map(({ values }) => (values[i] ?? 0) / HOUR),
    })),
  };
}

function sum(
  groups: readonly UsageGroup[],
  starts: readonly string[],
  member: "used_seconds" | "lost_seconds",
): number[] {
  const place = new Map(starts.map((start, i) => [start, i]));
  const found = starts.map(() => 0);
  for (const group of groups)
    for (const bucket of group.buckets) {
      const i = place.get(bucket.start);
      if (i !== undefined) found[i] = (found[i] ?? 0) + (bucket[member] ?? 0);
    }
  return found;
}

export const OCCUPANCY: readonly BarPart[] = [
  { label: "busy", color: "var(--good)" },
  { label: "idle beside waiting jobs", color: "var(--warn)", hatched: true },
  { label: "idle, nothing waited", color: "var(--line-strong)" },
];

/** Bars of slot-hours of pools; a part without recorded samples is unknown. */
export function buildOccupancyBars(report: UsageReport, pools: readonly PoolOccupancy[]): Bar[] {
  return report.starts.map((start) => {
    const found = pools.flatMap((pool) => pool.buckets.filter((one) => one.start === start));
    const total = (member: "slot_seconds" | "busy_seconds" | "idle_waiting_seconds") =>
      found.reduce((all, one) => all + (one[member] ?? 0), 0) / HOUR;
    const busy = total("busy_seconds");
    const waiting = total("idle_waiting_seconds");
    const idle = Math.max(0, total("slot_seconds") - busy - waiting);
    return {
      key: start,
      label: formatStart(start, report.bucket),
      values: [busy, waiting, idle],
      ...(found.length === 0 ? { unknown: "nothing was recorded" } : {}),
    };
  });
}
