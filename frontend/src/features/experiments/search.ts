import { choice, flag, type Search, text, tidy } from "@/lib/search";

export const STATES = ["running", "queued", "paused", "failed", "cancelled", "succeeded"] as const;
export const SORTS = ["-created_at", "created_at", "name", "-name"] as const;

export function readExperimentsSearch(search: Search) {
  return tidy({
    text: text(search, "text"),
    state: choice(search, "state", STATES),
    agent: text(search, "agent"),
    env: text(search, "env"),
    user: text(search, "user"),
    filter: text(search, "filter"),
    sort: choice(search, "sort", SORTS),
    archived: flag(search, "archived"),
  });
}

export type ExperimentsSearch = ReturnType<typeof readExperimentsSearch>;
