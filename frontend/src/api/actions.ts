/** What the dashboard changes. */
import { post, remove, setCsrfToken } from "./client";
import type { Experiment, Job, Schedule, Session } from "./types";

export type JobVerb = "pause" | "resume" | "cancel";

export async function login(user: string, password: string): Promise<Session> {
  return keep(await post<Session>("/session", { user, password }));
}

/** Redeems a one-time setup or login link. */
export async function redeem(code: string, user?: string, password?: string): Promise<Session> {
  return keep(await post<Session>("/session:redeem", { code, user: user || null, password: password || null }));
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

export function submitJob(runId: string, schedule: Schedule): Promise<Job> {
  return post<Job>(`/runs/${runId}/jobs`, { schedule });
}

export function archive(experimentId: string): Promise<Experiment> {
  return post<Experiment>(`/experiments/${encodeURIComponent(experimentId)}:archive`);
}

export function unarchive(experimentId: string): Promise<Experiment> {
  return post<Experiment>(`/experiments/${encodeURIComponent(experimentId)}:unarchive`);
}
