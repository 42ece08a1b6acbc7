import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import type { LiveEvent, Page, Run } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";

const TYPES = ["experiment", "run", "evaluation", "moved"];
/** Time between two refreshes of the lists, and where several pages of them are loaded. */
const REFRESH_MS = 1_500;
const LONG_REFRESH_MS = 8_000;

type Lists = InfiniteData<Page<Run>>;

/**
 * Keeps lists of runs current: a run that changes is replaced in its row at once; the lists are
 * read again with a delay, since order, filter and statistics may follow.
 */
export function useLiveRuns(project: string | null): void {
  const client = useQueryClient();
  const queryKey = keys.runLists;
  const read = () => void client.invalidateQueries({ queryKey });
  const refresh = useThrottle(read, REFRESH_MS);
  const refreshLong = useThrottle(read, LONG_REFRESH_MS);
  const refreshAll = () => {
    const lists = client.getQueriesData<Lists>({ queryKey, type: "active" });
    const pages = Math.max(0, ...lists.map(([, data]) => data?.pages?.length ?? 0));
    if (pages > 1) refreshLong();
    else refresh();
  };
  const take = (events: readonly LiveEvent[]) => {
    for (const event of events)
      if (event.type === "run")
        client.setQueriesData<Lists>({ queryKey }, (lists) =>
          replaceRun(lists, event.data as unknown as Run),
        );
    if (events.length > 0) refreshAll();
  };
  useLive(`runs:${project}`, null, { type: TYPES }, { onEvents: take, onResync: refreshAll });
}

/** Returns the lists with a run replaced; its values of columns stay, which events lack. */
export function replaceRun(lists: Lists | undefined, run: Run): Lists | undefined {
  const at = lists?.pages?.findIndex((page) => page.items?.some((one) => one.id === run.id)) ?? -1;
  if (lists === undefined || at < 0) return lists;
  const pages = [...lists.pages];
  const page = pages[at] as Page<Run>;
  const items = page.items.map((one) =>
    one.id === run.id ? { ...one, ...run, values: one.values } : one,
  );
  pages[at] = { ...page, items } as Page<Run>;
  return { ...lists, pages };
}
