/** The requests that read lists and groups of runs. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get } from "./client";
import { keys } from "./queries";
import type { Page, Run, RunGroup, RunKeys } from "./types";

/** Rows of the first page, which is shown as soon as it is there, and of each further one. */
export const FIRST_PAGE = 100;
const NEXT_PAGES = 500;
const GROUPS = 200;

export interface WantedRuns {
  /** Slug; `null` stands for all projects of the caller. */
  project: string | null;
  /** A filter in the language of the lists. */
  filter: string;
  /** Key of the order, with `-` in front to reverse. */
  sort: string;
  /** Keys whose values are read with each run. */
  columns: readonly string[];
}

export function runsQuery({ project, filter, sort, columns }: WantedRuns) {
  return infiniteQueryOptions({
    queryKey: [...keys.runLists, project, { filter, sort, columns }],
    queryFn: ({ signal, pageParam }) =>
      get<Page<Run>>(
        "/runs",
        {
          project,
          filter,
          sort,
          columns,
          limit: pageParam ? NEXT_PAGES : FIRST_PAGE,
          cursor: pageParam,
        },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** The runs of one group, at most 500. */
export function memberRunsQuery({ project, filter, sort, columns }: WantedRuns) {
  return queryOptions({
    queryKey: [...keys.runLists, project, { filter, sort, columns }, "members"],
    queryFn: ({ signal }) =>
      get<Page<Run>>("/runs", { project, filter, sort, columns, limit: NEXT_PAGES }, signal),
  });
}

export interface WantedGroups {
  project: string | null;
  filter: string;
  /** Keys whose values the runs of a group share. */
  by: readonly string[];
  /** Key of the values whose mean is shown. */
  metric: string;
  /** `mean`, `n`, `runs` or `name`, with `-` in front to reverse. */
  sort: string;
}

export function runGroupsQuery({ project, filter, by, metric, sort }: WantedGroups) {
  return infiniteQueryOptions({
    queryKey: [...keys.runGroups, project, { filter, by, metric, sort }],
    queryFn: ({ signal, pageParam }) =>
      get<Page<RunGroup>>(
        "/runs:groups",
        { project, filter, by, metric, sort, limit: GROUPS, cursor: pageParam },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** The number of all runs that fit a filter, and of those in each state. */
export function runTotalQuery(project: string | null, filter: string) {
  return queryOptions({
    queryKey: [...keys.runGroups, project, { filter }, "total"],
    queryFn: async ({ signal }): Promise<Pick<RunGroup, "runs" | "states">> => {
      const wanted = { project, filter, metric: "env_step" };
      const { items } = await get<Page<RunGroup>>("/runs:groups", wanted, signal);
      return items[0] ?? { runs: 0, states: {} };
    },
    placeholderData: keepPreviousData,
    retry: false,
  });
}

/**
 * The keys that filters, orders, columns and groups may name; with a filter, the series of the runs
 * that it finds.
 */
export function runKeysQuery(project: string | null, filter = "") {
  return queryOptions({
    queryKey: [...keys.runKeys, project, filter],
    queryFn: ({ signal }) => get<RunKeys>("/runs:keys", { project, filter }, signal),
    staleTime: 60_000,
  });
}
