/** Requests about pools, the projects that they admit, their enrolment tokens and workers. */
import { queryOptions } from "@tanstack/react-query";
import { get, patch, post, put, remove } from "./client";
import { keys } from "./queries";
import type {
  EnrolmentToken,
  Page,
  Pool,
  PoolChange,
  PoolRequest,
  PoolWindow,
  PoolWindowRequest,
  Worker,
} from "./types";

function poolPath(name: string, part = ""): string {
  return `/pools/${encodeURIComponent(name)}${part}`;
}

export const poolKeys = {
  one: (name: string) => [...keys.pools, name] as const,
  enrolments: (name: string) => [...keys.pools, name, "enrolment tokens"] as const,
};

export function poolQuery(name: string) {
  return queryOptions({
    queryKey: poolKeys.one(name),
    queryFn: ({ signal }) => get<Pool>(poolPath(name), {}, signal),
  });
}

export function enrolmentTokensQuery(pool: string) {
  return queryOptions({
    queryKey: poolKeys.enrolments(pool),
    queryFn: async ({ signal }) =>
      (await get<Page<EnrolmentToken>>(poolPath(pool, "/enrolment-tokens"), {}, signal)).items,
  });
}

/** The maintenance windows and reservations of a pool that have not ended. */
export function poolWindowsQuery(pool: string) {
  return queryOptions({
    queryKey: [...keys.pools, pool, "windows"],
    queryFn: async ({ signal }) =>
      (await get<Page<PoolWindow>>(poolPath(pool, "/windows"), {}, signal)).items,
  });
}

export function planPoolWindow(pool: string, request: PoolWindowRequest): Promise<PoolWindow> {
  return post<PoolWindow>(poolPath(pool, "/windows"), request);
}

export function cancelPoolWindow(pool: string, id: string): Promise<void> {
  return remove(poolPath(pool, `/windows/${encodeURIComponent(id)}`));
}

export function createPool(request: PoolRequest): Promise<Pool> {
  return post<Pool>("/pools", request);
}

export function changePool(name: string, change: PoolChange): Promise<Pool> {
  return patch<Pool>(poolPath(name), change);
}

export function deletePool(name: string): Promise<void> {
  return remove(poolPath(name));
}

export function pausePool(name: string, reason: string): Promise<Pool> {
  return post<Pool>(poolPath(name, ":pause"), { reason });
}

export function resumePool(name: string): Promise<Pool> {
  return post<Pool>(poolPath(name, ":resume"));
}

/** Admits a project, or changes its share. */
export function admitProject(pool: string, project: string, share: number): Promise<Pool> {
  return put<Pool>(poolPath(pool, `/projects/${encodeURIComponent(project)}`), { share });
}

export function removeProject(pool: string, project: string): Promise<void> {
  return remove(poolPath(pool, `/projects/${encodeURIComponent(project)}`));
}

/** Creates an enrolment token; only this answer holds its secret. */
export function createEnrolmentToken(
  pool: string,
  name: string,
  expiresInDays: number | null,
): Promise<EnrolmentToken> {
  return post<EnrolmentToken>(poolPath(pool, "/enrolment-tokens"), {
    name,
    expires_in_days: expiresInDays,
  });
}

export function revokeEnrolmentToken(pool: string, id: string): Promise<void> {
  return remove(poolPath(pool, `/enrolment-tokens/${id}`));
}

export type WorkerVerb = "drain" | "undrain" | "forget" | "rotate-secret";

export function actOnWorker(id: string, verb: WorkerVerb): Promise<Worker> {
  return post<Worker>(`/workers/${id}:${verb}`);
}
