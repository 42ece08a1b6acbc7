/** The requests that read jobs, workers and pools. */
import { queryOptions } from "@tanstack/react-query";
import { get } from "./client";
import { keys, pathIn } from "./queries";
import type * as t from "./types";

const OPEN_STATES: readonly t.JobState[] = [
  "queued",
  "lost",
  "starting",
  "running",
  "pausing",
  "paused",
  "cancelling",
  "preempting",
];

export interface OpenJobs {
  jobs: readonly t.Job[];
  /** States of which there are more jobs than were read. */
  cut: ReadonlySet<t.JobState>;
}

/** The open jobs of a project, or of all projects that the caller may read. */
export function jobsQuery(project: string | null) {
  return queryOptions({
    queryKey: [...keys.jobs, project],
    queryFn: async ({ signal }): Promise<OpenJobs> => {
      const read = (state: t.JobState) =>
        get<t.Page<t.Job>>(
          pathIn(project, "/jobs"),
          { state, sort: "created_at", limit: 500 },
          signal,
        );
      const pages = await Promise.all(OPEN_STATES.map(read));
      const cut = OPEN_STATES.filter((_, i) => pages[i]?.next_cursor !== null);
      return { jobs: pages.flatMap((page) => page.items), cut: new Set(cut) };
    },
  });
}

const OPEN_RUN_STATES: readonly t.RunState[] = ["queued", "running", "paused"];

/** Runs that have an open job, by id: jobs name their runs by id only. */
export function openRunsQuery(project: string | null) {
  return queryOptions({
    queryKey: [...keys.openRuns, project],
    queryFn: async ({ signal }) => {
      const read = (state: t.RunState) =>
        get<t.Page<t.Run>>(pathIn(project, "/runs"), { state, limit: 500 }, signal);
      const pages = await Promise.all(OPEN_RUN_STATES.map(read));
      return new Map(pages.flatMap((page) => page.items).map((run) => [run.id, run]));
    },
    staleTime: 30_000,
  });
}

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
