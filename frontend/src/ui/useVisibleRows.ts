import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useLayoutEffect, useState } from "react";

/** Rows from which on only the visible ones are rendered. */
export const VIRTUAL_FROM = 150;
const ROW = 30;

/** The rows of a table that are rendered, and the heights of those before and after them. */
export function useVisibleRows(count: number, body: RefObject<HTMLElement | null>) {
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (body.current) setMargin(body.current.getBoundingClientRect().top + window.scrollY);
  }, [body]);
  const enabled = count > VIRTUAL_FROM;
  const options = {
    count: enabled ? count : 0,
    estimateSize: () => ROW,
    overscan: 20,
    scrollMargin: margin,
  };
  const virtual = useWindowVirtualizer(options);
  const scrollTo = (index: number) => {
    if (enabled) virtual.scrollToIndex(index);
    else body.current?.querySelectorAll("tr")[index]?.scrollIntoView({ block: "nearest" });
  };
  if (!enabled) return { first: 0, last: count, before: 0, after: 0, scrollTo };
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = (items.at(-1)?.index ?? -1) + 1;
  return { first, last, before: first * ROW, after: (count - last) * ROW, scrollTo };
}
