import { choice, type Search, text, tidy } from "@/lib/search";

const DAY = /^\d{4}-\d\d-\d\d$/;

function day(search: Search, name: string): string | undefined {
  const found = text(search, name);
  return found !== undefined && DAY.test(found) && !Number.isNaN(Date.parse(found))
    ? found
    : undefined;
}

/** Reads the filter of the audit log from the URL; days are those of the viewer's zone. */
export function readAuditSearch(search: Search) {
  return tidy({
    user: text(search, "user"),
    action: text(search, "action"),
    object: text(search, "object"),
    outcome: choice(search, "outcome", ["allowed", "refused"]),
    since: day(search, "since"),
    until: day(search, "until"),
  });
}

export type AuditSearch = ReturnType<typeof readAuditSearch>;

/** The start of a day in the viewer's zone, `later` days after it. */
function findStartOfDay(date: string, later = 0): string {
  const start = new Date(`${date}T00:00:00`);
  start.setDate(start.getDate() + later);
  return start.toISOString();
}

/** The parameters of the API: `until` is exclusive there, and a day includes its end. */
export function buildAuditParameters(search: AuditSearch) {
  const { user, action, object, outcome, since, until } = search;
  return {
    user,
    action,
    object_id: object,
    outcome,
    since: since === undefined ? undefined : findStartOfDay(since),
    until: until === undefined ? undefined : findStartOfDay(until, 1),
  };
}
