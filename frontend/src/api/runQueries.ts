/** The requests that read lists of runs. */
import { infiniteQueryOptions, keepPreviousData } from "@tanstack/react-query";
import { get } from "./client";
import { keys, pathIn } from "./queries";
import type { Page, Run } from "./types";

/** Rows of the first page, which is shown as soon as it is there, and of each further one. */
export const FIRST_PAGE = 100;
const NEXT_PAGES = 500;

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
        pathIn(project, "/runs"),
        { filter, sort, columns, limit: pageParam ? NEXT_PAGES : FIRST_PAGE, cursor: pageParam },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}
