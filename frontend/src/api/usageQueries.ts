/** The requests that read what was used of the pools. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { buildAddress, get, type Parameters } from "./client";
import type * as t from "./types";

const FRESH_MS = 30_000;

/** The usage within a period, in total and by groups. */
export function usageQuery(parameters: Parameters) {
  return queryOptions({
    queryKey: ["usage", parameters],
    queryFn: ({ signal }) => get<t.UsageReport>("/usage", parameters, signal),
    placeholderData: keepPreviousData,
    refetchInterval: FRESH_MS,
  });
}

/** The URL of the usage as CSV. */
export function usageExport(parameters: Parameters): string {
  return buildAddress("/usage:export", parameters);
}

/** The quotas that limit the caller, with what is left of them. */
export const ownQuotasQuery = queryOptions({
  queryKey: ["usage", "own quotas"],
  queryFn: ({ signal }) => get<t.OwnQuotas>("/usage/quotas", {}, signal),
  refetchInterval: FRESH_MS,
});

/** The shares and the usage of the projects and persons of a pool. */
export function sharesQuery(pool: string | null) {
  return queryOptions({
    queryKey: ["pools", pool, "shares"],
    queryFn: ({ signal }) =>
      get<t.PoolShares>(`/pools/${encodeURIComponent(pool ?? "")}/shares`, {}, signal),
    enabled: pool !== null,
    refetchInterval: FRESH_MS,
  });
}
