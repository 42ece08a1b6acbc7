import { useEffect, useRef, useState } from "react";
import { registerShortcuts } from "@/lib/shortcuts";

/** `j`, `k` and Enter over rows. Returns the selected index, -1 for none. */
export function useRowKeys(
  count: number,
  open: ((index: number) => void) | undefined,
  show: (index: number) => void,
): number {
  const [selected, setSelected] = useState(-1);
  const latest = useRef({ count, open, show, selected });
  latest.current = { count, open, show, selected };
  const active = open !== undefined;
  useEffect(() => {
    if (!active) return;
    const move = (by: number) => {
      const now = latest.current;
      const next = Math.min(now.count - 1, Math.max(0, now.selected + by));
      setSelected(next);
      now.show(next);
    };
    return registerShortcuts([
      { keys: "j", what: "Next row", run: () => move(1) },
      { keys: "k", what: "Row above", run: () => move(-1) },
      {
        keys: "enter",
        what: "Open the row",
        run: () => {
          const now = latest.current;
          if (now.selected < 0 || now.selected >= now.count) return false;
          now.open?.(now.selected);
          return true;
        },
      },
    ]);
  }, [active]);
  return Math.min(selected, count - 1);
}
