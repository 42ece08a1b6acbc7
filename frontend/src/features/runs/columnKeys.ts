/** What the keys of columns mean: fields of runs, members of definitions, series, thresholds. */

import { THRESHOLD_PREFIX } from "@/lib/thresholdKeys";

export type ColumnKind = "field" | "member" | "series" | "threshold";

export interface ColumnKey {
  key: string;
  kind: ColumnKind;
  /** Heading, without the statistic. */
  title: string;
  /** Statistic of a series, or of the first crossing of a threshold. */
  statistic: string | null;
  isNumber: boolean;
  width: number;
  /** Whether runs may be grouped by it. */
  isGroupable: boolean;
}

interface Field {
  title: string;
  width: number;
  isNumber?: boolean;
  isGroupable?: boolean;
  isUnsorted?: boolean;
}

export const FIELDS: Readonly<Record<string, Field>> = {
  name: { title: "Name", width: 220, isGroupable: true },
  state: { title: "State", width: 128, isGroupable: true },
  agent: { title: "Agent", width: 90, isGroupable: true },
  env: { title: "Environment", width: 130, isGroupable: true },
  seed: { title: "Seed", width: 64, isNumber: true, isGroupable: true },
  env_step: { title: "env_steps", width: 92, isNumber: true },
  update: { title: "Updates", width: 88, isNumber: true },
  episode: { title: "Episodes", width: 88, isNumber: true },
  created: { title: "Created", width: 96, isNumber: true },
  started: { title: "Started", width: 96, isNumber: true },
  finished: { title: "Finished", width: 96, isNumber: true },
  user: { title: "By", width: 92, isGroupable: true },
  cause: { title: "Cause", width: 120 },
  kind: { title: "Kind", width: 90, isGroupable: true },
  experiment: { title: "Experiment", width: 190, isGroupable: true },
  project: { title: "Project", width: 110, isGroupable: true, isUnsorted: true },
  id: { title: "Run ID", width: 150 },
};

export const STATISTICS = ["last", "best", "mean10", "count"] as const;
export const THRESHOLD_STATISTICS = ["env_step", "seconds"] as const;
const WORDS: Readonly<Record<string, string>> = {
  last: "last",
  best: "best",
  mean10: "mean",
  count: "count",
  env_step: "env_step",
  seconds: "seconds",
};
const SERIES_PREFIX = "series.";

/** A statistic in a word: `mean10` is the mean of the last ten values. */
export function nameStatistic(statistic: string): string {
  return WORDS[statistic] ?? statistic;
}

export function writeSeriesKey(series: string, statistic: string): string {
  return `${series.includes("/") ? "" : SERIES_PREFIX}${series}.${statistic}`;
}

export function describeKey(key: string): ColumnKey {
  const field = FIELDS[key];
  if (field !== undefined)
    return {
      key,
      kind: "field",
      title: field.title,
      statistic: null,
      isNumber: field.isNumber ?? false,
      width: field.width,
      isGroupable: field.isGroupable ?? false,
    };
  if (key.startsWith(THRESHOLD_PREFIX)) {
    const [name = "", statistic = "env_step"] = key.slice(THRESHOLD_PREFIX.length).split(".");
    return {
      key,
      kind: "threshold",
      title: `reached ${name}`,
      statistic,
      isNumber: true,
      width: 136,
      isGroupable: false,
    };
  }
  if (key.includes("/") || key.startsWith(SERIES_PREFIX)) {
    const written = key.startsWith(SERIES_PREFIX) ? key.slice(SERIES_PREFIX.length) : key;
    const dot = written.lastIndexOf(".");
    const end = written.slice(dot + 1);
    const isNamed = dot > 0 && (STATISTICS as readonly string[]).includes(end);
    return {
      key,
      kind: "series",
      title: isNamed ? written.slice(0, dot) : written,
      statistic: isNamed ? end : "last",
      isNumber: true,
      width: 168,
      isGroupable: false,
    };
  }
  return {
    key,
    kind: "member",
    title: key,
    statistic: null,
    isNumber: false,
    width: 110,
    isGroupable: true,
  };
}

/** The heading of a column as plain text. */
export function nameKey(key: string): string {
  const { title, statistic } = describeKey(key);
  return statistic === null ? title : `${title}, ${nameStatistic(statistic)}`;
}

export function isSortable(key: string): boolean {
  return FIELDS[key]?.isUnsorted !== true;
}

const NATIVE = new Set([
  "state",
  "seed",
  "env_step",
  "update",
  "episode",
  "created",
  "started",
  "finished",
  "user",
  "cause",
  "experiment",
  "project",
  "id",
]);

/** The keys whose values a list must be asked for: the others are members of every run. */
export function listAskedKeys(columns: readonly string[]): string[] {
  return columns.filter((key) => !NATIVE.has(key));
}
