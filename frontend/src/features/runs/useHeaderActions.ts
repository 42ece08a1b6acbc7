import { useMemo } from "react";
import { readOrder } from "@/lib/sortOrder";
import type { HeaderActions } from "@/ui/GridHeader";
import { describeKey } from "./columnKeys";
import type { useRunsState } from "./useRunsState";

/** Keys that make a group, at most. */
const MOST_KEYS = 4;

/** What the headings of the table do to the state of the page. */
export function useHeaderActions(page: ReturnType<typeof useRunsState>): HeaderActions {
  const { state, change } = page;
  return useMemo(() => {
    const { sort, groupBy } = state;
    return {
      order: readOrder(sort),
      onSort: page.sortBy,
      onUnsort: page.unsort,
      onResize: page.resize,
      onPin: page.pin,
      onHide: page.hide,
      onMove: page.move,
      items: (key) => {
        const isGroupable = describeKey(key).isGroupable && groupBy.length < MOST_KEYS;
        if (!isGroupable || groupBy.includes(key)) return [];
        return [
          {
            label: groupBy.length === 0 ? "Group by it" : "Group by it as well",
            run: () => change({ groupBy: [...groupBy, key] }),
          },
        ];
      },
    };
  }, [state, change, page.sortBy, page.unsort, page.resize, page.pin, page.hide, page.move]);
}
