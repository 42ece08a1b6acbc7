/** Requests for statistics over runs, and for comparisons of runs. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { isTransient } from "@/lib/outage";
import { ApiError, get, postQuery } from "./client";
import { keys } from "./queries";
import type * as t from "./types";

export const STATISTICS_PATH = "POST /api/v1/statistics:aggregate";
export const COMPARISON_PATH = "POST /api/v1/runs:compare";
export const SERIES_PATH = "POST /api/v1/series:query";

/** Whether to send a query again: one that was refused is refused again. */
function isWorthRepeating(failures: number, error: Error): boolean {
  return failures < 3 && !(error instanceof ApiError && !isTransient(error));
}

export function statisticsQuery(query: t.StatisticsQuery) {
  return queryOptions({
    queryKey: [...keys.curves, "statistics", query],
    queryFn: ({ signal }) => postQuery<t.StatisticsResult>("/statistics:aggregate", query, signal),
    placeholderData: keepPreviousData,
    retry: isWorthRepeating,
  });
}

export function comparisonQuery(query: t.ComparisonQuery) {
  return queryOptions({
    queryKey: [...keys.comparisons, query],
    queryFn: ({ signal }) => postQuery<t.ComparisonResult>("/runs:compare", query, signal),
    placeholderData: keepPreviousData,
    retry: isWorthRepeating,
  });
}

/** All runs that a filter finds in a project, the oldest first, with the values of some fields. */
export function everyRunQuery(project: string, filter: string, columns: readonly string[]) {
  return queryOptions({
    queryKey: [...keys.statistics, "runs", project, filter, columns],
    queryFn: async ({ signal }) => {
      const items: t.Run[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: t.Page<t.Run> = await get(
          "/runs",
          { project, filter, columns: [...new Set(columns)], sort: "created", limit: 500, cursor },
          signal,
        );
        items.push(...page.items);
        cursor = page.next_cursor;
      }
      return items;
    },
    placeholderData: keepPreviousData,
  });
}
