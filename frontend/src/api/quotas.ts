/** Requests about quotas in pools. */
import { queryOptions } from "@tanstack/react-query";
import { get, patch } from "./client";
import { keys } from "./queries";
import type { ProjectQuotas, QuotaChange } from "./types";

function quotasPath(pool: string, project: string): string {
  return `/pools/${encodeURIComponent(pool)}/projects/${encodeURIComponent(project)}/quotas`;
}

export function quotasQuery(pool: string, project: string) {
  return queryOptions({
    queryKey: [...keys.pools, pool, "quotas", project] as const,
    queryFn: ({ signal }) => get<ProjectQuotas>(quotasPath(pool, project), {}, signal),
  });
}

export function changeQuotas(pool: string, project: string, change: QuotaChange) {
  return patch<ProjectQuotas>(quotasPath(pool, project), change);
}
