/** Statistics over runs, as papers report them. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { ApiError, postQuery } from "./client";
import { keys } from "./queries";
import type { StatisticsQuery, StatisticsResult } from "./types";

export function statisticsQuery(query: StatisticsQuery) {
  return queryOptions({
    queryKey: [...keys.curves, "statistics", query],
    queryFn: ({ signal }) => postQuery<StatisticsResult>("/statistics:aggregate", query, signal),
    placeholderData: keepPreviousData,
    // A query that is refused is refused again.
    retry: (failures, error) => failures < 3 && !(error instanceof ApiError && error.status < 500),
  });
}
