import { choice, type Search, text, tidy } from "@/lib/search";

export const CLASSES = ["interactive", "urgent", "normal", "idle"] as const;
export const SHOWN = ["project", "mine"] as const;

export function readQueueSearch(search: Search) {
  return tidy({
    pool: text(search, "pool"),
    show: choice(search, "show", SHOWN),
    class: choice(search, "class", CLASSES),
  });
}

export type QueueSearch = ReturnType<typeof readQueueSearch>;
