import { type UseQueryResult, useInfiniteQuery, useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { memberRunsQuery, runGroupsQuery } from "@/api/runQueries";
import type { Page, Run, RunGroup } from "@/api/types";
import { joinFilters } from "@/lib/filterTerms";
import { findQueryError } from "@/lib/outage";
import { chooseGroupSort, chooseMetric, identifyGroup } from "./groupKeys";
import { listGroupItems, type Members } from "./runItems";
import type { RunsState } from "./search";

const NO_GROUPS: readonly RunGroup[] = [];

interface WantedGroups {
  project: string;
  state: RunsState;
  /** Keys whose values are read with the runs of open groups. */
  columns: readonly string[];
}

/** The groups of the runs, and the runs of those that are open. */
export function useRunGroups({ project, state, columns }: WantedGroups) {
  const { filter, sort, groupBy } = state;
  const isGrouped = groupBy.length > 0;
  const wanted = {
    project,
    filter,
    by: groupBy,
    metric: chooseMetric(sort),
    sort: chooseGroupSort(sort, groupBy),
  };
  const query = useInfiniteQuery({ ...runGroupsQuery(wanted), enabled: isGrouped });
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const groups = useMemo(
    () => (isGrouped ? (query.data?.pages.flatMap((page) => page.items) ?? NO_GROUPS) : NO_GROUPS),
    [isGrouped, query.data],
  );
  const opened = useMemo(
    () => groups.filter((group) => open.has(`group ${identifyGroup(group.by)}`)),
    [groups, open],
  );
  const members = useQueries({
    queries: opened.map((group) =>
      memberRunsQuery({ project, filter: joinFilters(filter, group.filter), sort, columns }),
    ),
    combine: readMembers,
  });
  const items = useMemo(() => {
    const found = new Map(
      opened.map((group, i) => [`group ${identifyGroup(group.by)}`, members[i] as Members]),
    );
    return listGroupItems(groups, found);
  }, [groups, opened, members]);
  const toggle = useCallback(
    (id: string) =>
      setOpen((old) => {
        const next = new Set(old);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    [],
  );
  return { query, items, toggle };
}

function readMembers(found: UseQueryResult<Page<Run>>[]): Members[] {
  return found.map((one) => ({
    runs: one.data?.items ?? [],
    isPending: one.isPending,
    problem: findQueryError(one)?.message ?? null,
    hasMore: one.data?.next_cursor != null,
  }));
}
