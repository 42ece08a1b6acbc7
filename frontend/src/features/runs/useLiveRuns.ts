import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import type { LiveEvent, Page, Run } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["experiment", "run", "evaluation", "moved"];
/** Time between two refreshes of the lists, and where several pages of them are loaded. */
const REFRESH_MS = 1_500;
const LONG_REFRESH_MS = 8_000;

/** A list in pages, or the runs of one group. */
type RunList = InfiniteData<Page<Run>> | Page<Run>;

/**
 * Keeps lists of runs current: a run that changes is replaced in its row at once; the lists are
 * read again with a delay, since order, filter and statistics may follow.
 */
export function useLiveRuns(project: string | null): void {
  const client = useQueryClient();
  const queryKey = keys.runLists;
  const read = () => {
    for (const one of [keys.runLists, keys.runGroups])
      void client.invalidateQueries({ queryKey: one });
  };
  const refresh = useThrottle(read, REFRESH_MS);
  const refreshLong = useThrottle(read, LONG_REFRESH_MS);
  const refreshAll = () => {
    const lists = client.getQueriesData<RunList>({ queryKey, type: "active" });
    const isLong = lists.some(([, data]) => data && "pages" in data && data.pages.length > 1);
    if (isLong) refreshLong();
    else refresh();
  };
  const take = (events: readonly LiveEvent[]) => {
    for (const event of events)
      if (event.type === "run")
        client.setQueriesData<RunList>({ queryKey }, (list) =>
          replaceRun(list, event.data as unknown as Run),
        );
    if (events.length > 0) refreshAll();
  };
  useLive(`runs:${project}`, null, { type: TYPES }, { onEvents: take, onResync: refreshAll });
}

/** Returns the list with a run replaced; its values of columns stay, which events lack. */
export function replaceRun(list: RunList | undefined, run: Run): RunList | undefined {
  if (list === undefined) return undefined;
  if (!("pages" in list)) return replaceIn(list, run);
  const pages = list.pages.map((page) => replaceIn(page, run));
  return pages.every((page, i) => page === list.pages[i]) ? list : { ...list, pages };
}

function replaceIn(page: Page<Run>, run: Run): Page<Run> {
  if (!page.items.some((one) => one.id === run.id)) return page;
  const items = page.items.map((one) =>
    one.id === run.id ? ({ ...one, ...run, values: one.values } as Run) : one,
  );
  return { ...page, items };
}
