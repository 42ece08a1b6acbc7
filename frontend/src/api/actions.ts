/** The requests that change something. */

import type { JobForm } from "@/lib/jobForms";
import { patch, post, postQuery, remove, setCsrfToken } from "./client";
import { experimentPath, pathIn } from "./queries";
import type {
  ChangePreview,
  Experiment,
  ExperimentDetail,
  Job,
  JobChange,
  JobSelection,
  JobsActed,
  JobVerb as JobsVerb,
  LinkPreview,
  Session,
} from "./types";

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

/**
 * Acts on many jobs, by as many requests as needed; counts them alone with `dryRun`. `matched` is
 * the number of all jobs that were selected.
 */
export async function actOnJobs(
  project: string | null,
  action: JobsVerb,
  selection: JobSelection,
  { change, dryRun = false }: { change?: JobChange; dryRun?: boolean } = {},
): Promise<JobsActed> {
  const body = { action, selection, dry_run: dryRun, ...(change ? { change } : {}) };
  const first = await post<JobsActed>("/jobs:act", body, { project });
  const done = [...first.done];
  const refused = [...first.refused];
  for (let after = first.next_after; after !== null; ) {
    const part = await post<JobsActed>("/jobs:act", { ...body, after }, { project });
    done.push(...part.done);
    refused.push(...part.refused);
    after = part.next_after;
  }
  return { ...first, done, refused, next_after: null };
}

/** Changes class, priority or limits of a waiting job. */
export function changeJob(jobId: string, change: JobChange): Promise<Job> {
  return patch<Job>(`/jobs/${jobId}`, change);
}

/** Moves a waiting job directly before another one of its person; `null`: after all of them. */
export function reorderJob(jobId: string, before: string | null): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:reorder`, { before });
}

/** What a change of waiting jobs would do to the queue; changes nothing. */
export function previewChange(wanted: PreviewedChange, signal?: AbortSignal) {
  if ("selection" in wanted) {
    const { project, action, selection, change } = wanted;
    const body = { action, selection, ...(change ? { change } : {}) };
    return postQuery<ChangePreview>("/jobs:preview-act", body, signal, { project });
  }
  const job = `/jobs/${encodeURIComponent(wanted.jobId)}`;
  return "change" in wanted
    ? postQuery<ChangePreview>(`${job}:preview-change`, wanted.change, signal)
    : postQuery<ChangePreview>(`${job}:preview-reorder`, { before: wanted.before }, signal);
}

/** A change of one job, a move of one job, or an action on many. */
export type PreviewedChange =
  | { jobId: string; change: JobChange }
  | { jobId: string; before: string | null }
  | { project: string | null; action: JobsVerb; selection: JobSelection; change?: JobChange };

/** Where a retry starts: at the newest stored snapshot, or at the start of the run. */
export type Origin = "newest" | "start";

/** Resumes a paused job with the workers' code where it differs from the experiment's. */
export function resumeWithOtherCode(jobId: string): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:resume`, { allow_code_change: true });
}

export function retryRun(
  runId: string,
  origin: Origin,
  { otherCode = false, reason = "" }: { otherCode?: boolean; reason?: string } = {},
): Promise<Job> {
  return post<Job>(`/runs/${runId}:retry`, {
    origin,
    ...(reason ? { reason } : {}),
    ...(otherCode ? { allow_code_change: true } : {}),
  });
}

export type QueueRequest = JobForm | { schedule: "test"; pool?: string };

/** Queues a job on a run: an evaluation, an export or a test. */
export function queueJob(runId: string, request: QueueRequest): Promise<Job> {
  return post<Job>(`/runs/${runId}/jobs`, request);
}

type ExperimentName = Pick<Experiment, "project" | "id">;

export function archive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(`${experimentPath(id)}:archive`, undefined, { project });
}

export function unarchive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(`${experimentPath(id)}:unarchive`, undefined, { project });
}

/** Limits how many jobs of an experiment run at the same time; `null` removes the limit. */
export function limitExperiment({ project, id }: ExperimentName, most: number | null) {
  return patch<ExperimentDetail>(experimentPath(id), { max_running: most }, { project });
}

/** Moves an experiment whose jobs have ended to another project, named by its slug. */
export function moveExperiment({ project, id }: ExperimentName, to: string) {
  const path = pathIn(project, `${experimentPath(id)}:move`);
  return post<ExperimentDetail>(path, { to });
}

/** Discards the results that a worker could not upload; the job then ends without them. */
export function giveUpResults(jobId: string): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:give-up`, {});
}
