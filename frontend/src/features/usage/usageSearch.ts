import { choice, type Search, text, tidy } from "@/lib/search";

export const KEYS = ["project", "user", "environment", "experiment", "pool"] as const;
export type UsageKey = (typeof KEYS)[number];

interface Period {
  label: string;
  hours: number;
  bucket: "hour" | "day" | "week";
}

/** The periods to choose from; each is divided into at most 31 parts. */
export const PERIODS = {
  day: { label: "24 hours", hours: 24, bucket: "hour" },
  week: { label: "7 days", hours: 7 * 24, bucket: "day" },
  month: { label: "30 days", hours: 30 * 24, bucket: "day" },
  quarter: { label: "12 weeks", hours: 84 * 24, bucket: "week" },
} as const satisfies Record<string, Period>;
export type PeriodName = keyof typeof PERIODS;

/** Reads the query of the page from the URL; by default the usage of a week by project. */
export function readUsageSearch(search: Search) {
  return tidy({
    by: choice(search, "by", KEYS),
    period: choice(search, "period", Object.keys(PERIODS) as PeriodName[]),
    pool: text(search, "pool"),
    user: text(search, "user"),
  });
}

export type UsageSearch = ReturnType<typeof readUsageSearch>;

/** The parameters of the API. The present hour is the last one, so that equal views are equal. */
export function buildUsageParameters(search: UsageSearch, now: number) {
  const { hours, bucket } = PERIODS[search.period ?? "week"];
  const hour = Math.floor(now / 3_600_000) * 3_600_000;
  return {
    by: search.by ?? "project",
    bucket,
    since: new Date(hour - (hours - 1) * 3_600_000).toISOString(),
    pool: search.pool,
    user: search.user,
  };
}
