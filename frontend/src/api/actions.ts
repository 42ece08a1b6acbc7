/** The requests that change something. */

import type { JobForm } from "@/lib/jobForms";
import { post, postQuery, remove, setCsrfToken } from "./client";
import { pathIn } from "./queries";
import type { Experiment, ExperimentDetail, Job, LinkPreview, Session } from "./types";

export type JobVerb = "pause" | "resume" | "cancel";

export async function login(user: string, password: string): Promise<Session> {
  return keep(await post<Session>("/session", { user, password }));
}

/**
 * The name and password chosen when a link is redeemed; a value that is left out stays as it is.
 */
export interface RedemptionChoice {
  user?: string;
  displayName?: string;
  password?: string;
}

function linkRequest(code: string, { user, displayName, password }: RedemptionChoice) {
  return {
    code,
    user: user || null,
    display_name: displayName?.trim() || null,
    password: password || null,
  };
}

/** Redeems a one-time link or an invitation, which is then used up. */
export async function redeem(code: string, chosen: RedemptionChoice = {}): Promise<Session> {
  return keep(await post<Session>("/session:redeem", linkRequest(code, chosen)));
}

/** Asks what a link is for, and which faults name and password have; the link stays valid. */
export function previewLink(
  code: string,
  chosen: RedemptionChoice = {},
  signal?: AbortSignal,
): Promise<LinkPreview> {
  return postQuery("/session:redeem", { ...linkRequest(code, chosen), check_only: true }, signal);
}

export async function logout(): Promise<void> {
  await remove("/session");
  setCsrfToken(null);
}

function keep(session: Session): Session {
  setCsrfToken(session.csrf_token);
  return session;
}

export function actOnJob(jobId: string, verb: JobVerb): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:${verb}`, {});
}

/** Where a retry starts: at the newest stored snapshot, or at the start of the run. */
export type Origin = "newest" | "start";

/** Resumes a paused job with the workers' code where it differs from the experiment's. */
export function resumeWithOtherCode(jobId: string): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:resume`, { allow_code_change: true });
}

export function retryRun(runId: string, origin: Origin, otherCode = false): Promise<Job> {
  return post<Job>(`/runs/${runId}:retry`, {
    origin,
    ...(otherCode ? { allow_code_change: true } : {}),
  });
}

export type QueueRequest = JobForm | { schedule: "test" };

/** Queues a job on a run: an evaluation, an export or a test. */
export function queueJob(runId: string, request: QueueRequest): Promise<Job> {
  return post<Job>(`/runs/${runId}/jobs`, request);
}

type ExperimentName = Pick<Experiment, "project" | "id">;

export function archive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(pathIn(project, `/experiments/${encodeURIComponent(id)}:archive`));
}

export function unarchive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(pathIn(project, `/experiments/${encodeURIComponent(id)}:unarchive`));
}

/** Moves an experiment whose jobs have ended to another project, named by its slug. */
export function moveExperiment({ project, id }: ExperimentName, to: string) {
  const path = pathIn(project, `/experiments/${encodeURIComponent(id)}:move`);
  return post<ExperimentDetail>(path, { to });
}

/** Discards the results that a worker could not upload; the job then ends without them. */
export function giveUpResults(jobId: string): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:give-up`, {});
}
