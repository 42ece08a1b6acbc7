import { useEffect, useRef, useState } from "react";
import { registerShortcuts } from "@/lib/shortcuts";

/**
 * `j`, `k` and Enter over rows. Returns the selected index, -1 for none.
 *
 * The selection follows its row when the list changes. It ends at Escape and when a field gets the
 * focus, so that a key typed into a field never opens a row.
 */
export function useRowKeys(
  ids: readonly string[],
  open: ((index: number) => void) | undefined,
  show: (index: number) => void,
): number {
  const [selected, setSelected] = useState<string | null>(null);
  const index = selected === null ? -1 : ids.indexOf(selected);
  const latest = useRef({ ids, open, show, index });
  latest.current = { ids, open, show, index };
  const active = open !== undefined;
  useEffect(() => {
    if (!active) return;
    const move = (by: number) => {
      const now = latest.current;
      const next = Math.min(now.ids.length - 1, Math.max(0, now.index + by));
      setSelected(now.ids[next] ?? null);
      now.show(next);
    };
    return registerShortcuts([
      { keys: "j", what: "Next row", run: () => move(1) },
      { keys: "k", what: "Row above", run: () => move(-1) },
      { keys: "escape", what: "Select no row", run: () => setSelected(null) },
      {
        keys: "enter",
        what: "Open the row",
        run: () => {
          const now = latest.current;
          if (now.index < 0) return false;
          now.open?.(now.index);
          return true;
        },
      },
    ]);
  }, [active]);
  useEffect(() => {
    if (!active) return;
    const entered = (event: FocusEvent) => {
      if (event.target instanceof HTMLInputElement) setSelected(null);
    };
    document.addEventListener("focusin", entered);
    return () => document.removeEventListener("focusin", entered);
  }, [active]);
  return index;
}
