/** The requests that change something. */
import { post, remove, setCsrfToken } from "./client";
import { pathIn } from "./queries";
import type { Experiment, Job, Schedule, Session } from "./types";

export type JobVerb = "pause" | "resume" | "cancel";

export async function login(user: string, password: string): Promise<Session> {
  return keep(await post<Session>("/session", { user, password }));
}

/** Redeems a one-time setup or login link. */
export async function redeem(code: string, user?: string, password?: string): Promise<Session> {
  return keep(
    await post<Session>("/session:redeem", {
      code,
      user: user || null,
      password: password || null,
    }),
  );
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

export function submitJob(runId: string, schedule: Schedule): Promise<Job> {
  return post<Job>(`/runs/${runId}/jobs`, { schedule });
}

type ExperimentName = Pick<Experiment, "project" | "id">;

export function archive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(pathIn(project, `/experiments/${encodeURIComponent(id)}:archive`));
}

export function unarchive({ project, id }: ExperimentName): Promise<Experiment> {
  return post<Experiment>(pathIn(project, `/experiments/${encodeURIComponent(id)}:unarchive`));
}

/** Gives up the results that a worker could not upload; the job then ends without them. */
export function giveUpResults(jobId: string): Promise<Job> {
  return post<Job>(`/jobs/${jobId}:give-up`, {});
}
