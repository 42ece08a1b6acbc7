import { choice, flag, type Search, text, tidy } from "@/lib/search";

export const STATES = ["running", "queued", "paused", "failed", "cancelled", "succeeded"] as const;
const SORTS = ["-created_at", "created_at", "name", "-name"] as const;

const BY_THRESHOLD = /^-?reached\.[a-z0-9-]+$/;

function readSort(search: Search): string | undefined {
  const written = text(search, "sort") ?? "";
  return BY_THRESHOLD.test(written) ? written : choice(search, "sort", SORTS);
}

export function readExperimentsSearch(search: Search) {
  return tidy({
    text: text(search, "text"),
    state: choice(search, "state", STATES),
    agent: text(search, "agent"),
    env: text(search, "env"),
    user: text(search, "user"),
    filter: text(search, "filter"),
    sort: readSort(search),
    /** Names of the thresholds that have a column, with commas; `none` for no column. */
    reached: text(search, "reached"),
    archived: flag(search, "archived"),
  });
}

export type ExperimentsSearch = ReturnType<typeof readExperimentsSearch>;
