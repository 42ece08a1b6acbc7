/** The requests of the pages for administrators and maintainers. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { buildAddress, get, type Parameters } from "./client";
import { pathIn } from "./queries";
import type * as t from "./types";

const PAGE_SIZE = 100;

export const adminKeys = {
  members: (project: string) => ["members", project] as const,
};

export function membersQuery(project: string) {
  return queryOptions({
    queryKey: adminKeys.members(project),
    queryFn: async ({ signal }) =>
      (await get<t.Page<t.Member>>(pathIn(project, "/members"), {}, signal)).items,
  });
}

/** Entries of the audit log of a project or of the server, the newest first. */
export function auditQuery(project: string | null, filter: Parameters) {
  return infiniteQueryOptions({
    queryKey: ["audit", project, filter],
    queryFn: ({ signal, pageParam }) =>
      get<t.Page<t.AuditEntry>>(
        "/audit",
        { ...filter, project, limit: PAGE_SIZE, cursor: pageParam },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** The URL of the audit log as JSON lines. */
export function auditExport(project: string | null, filter: Parameters): string {
  return buildAddress("/audit:export", { ...filter, project });
}
