/** The requests that read jobs, workers and pools. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get } from "./client";
import { keys } from "./queries";
import type * as t from "./types";

const ACTIVE_STATES: readonly t.JobState[] = [
  "starting",
  "running",
  "pausing",
  "paused",
  "cancelling",
  "preempting",
];
const MOST_ACTIVE = 500;

export interface ActiveJobs {
  jobs: readonly t.Job[];
  /** Whether there are more jobs than were read. */
  cut: boolean;
}

/** The jobs that hold a slot or are paused, of a project or of all projects of the caller. */
export function activeJobsQuery(project: string | null) {
  return queryOptions({
    queryKey: [...keys.jobs, project],
    queryFn: async ({ signal }): Promise<ActiveJobs> => {
      const page = await get<t.Page<t.Job>>(
        "/jobs",
        { project, state: ACTIVE_STATES, sort: "created_at", limit: MOST_ACTIVE },
        signal,
      );
      return { jobs: page.items, cut: page.next_cursor !== null };
    },
  });
}

const ENDED_STATES: readonly t.JobState[] = ["succeeded", "failed", "cancelled"];

interface EndedFilter {
  pool: string;
  /** Slug; `null` for all projects of the caller. */
  project: string | null;
  /** Login name of who submitted; `me` is the caller. */
  user: string | undefined;
}

/** The jobs of a pool that have ended, the newest first. */
export function endedJobsQuery({ pool, project, user }: EndedFilter) {
  return infiniteQueryOptions({
    queryKey: [...keys.jobs, "ended", pool, project, user],
    queryFn: ({ signal, pageParam }) =>
      get<t.Page<t.Job>>(
        "/jobs",
        {
          project,
          pool,
          user,
          state: ENDED_STATES,
          sort: "-created_at",
          limit: 50,
          cursor: pageParam,
        },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });
}

export interface WaitingFilter {
  pool: string;
  priority_class?: t.PriorityClass | undefined;
  /** Login name of who submitted; `me` is the caller. */
  user?: string | undefined;
  /** Slug of the project. */
  project?: string | undefined;
}

/** Jobs of one page of a queue. */
export const QUEUE_PAGE = 200;

/** The waiting jobs of a pool in the order in which they will start. */
export function waitingJobsQuery({ pool, ...filter }: WaitingFilter) {
  return infiniteQueryOptions({
    queryKey: [...keys.waiting, pool, filter],
    queryFn: ({ signal, pageParam }) =>
      get<t.WaitingQueue>(
        `/pools/${encodeURIComponent(pool)}/queue`,
        { ...filter, limit: QUEUE_PAGE, cursor: pageParam },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

/** What the projects and persons of a pool are entitled to, and what they used. */
export function poolSharesQuery(pool: string) {
  return queryOptions({
    queryKey: [...keys.shares, pool],
    queryFn: ({ signal }) =>
      get<t.PoolShares>(`/pools/${encodeURIComponent(pool)}/shares`, {}, signal),
  });
}

/** How well the latest starts of a pool's jobs were estimated. */
export function accuracyQuery(pool: string) {
  return queryOptions({
    queryKey: [...keys.pools, pool, "estimates"],
    queryFn: ({ signal }) =>
      get<t.EstimateAccuracy>(`/pools/${encodeURIComponent(pool)}/estimates`, {}, signal),
    staleTime: 30_000,
  });
}

/** The caller's own runs and jobs, and the numbers of jobs in the caller's projects. */
export const overviewQuery = queryOptions({
  queryKey: keys.overview,
  queryFn: ({ signal }) => get<t.Overview>("/account/overview", {}, signal),
});

export function jobQuery(jobId: string) {
  return queryOptions({
    queryKey: [...keys.jobs, "one", jobId],
    queryFn: ({ signal }) => get<t.Job>(`/jobs/${jobId}`, {}, signal),
  });
}

/** The explanation of a waiting job. */
export function explanationQuery(jobId: string) {
  return queryOptions({
    queryKey: [...keys.jobs, "explanation", jobId],
    queryFn: ({ signal }) =>
      get<t.JobExplanation>(`/jobs/${encodeURIComponent(jobId)}/explain`, {}, signal),
  });
}

export const workersQuery = queryOptions({
  queryKey: keys.workers,
  queryFn: async ({ signal }) => (await get<t.Page<t.Worker>>("/workers", {}, signal)).items,
});

export const poolsQuery = queryOptions({
  queryKey: keys.pools,
  queryFn: async ({ signal }) => (await get<t.Page<t.Pool>>("/pools", {}, signal)).items,
});
