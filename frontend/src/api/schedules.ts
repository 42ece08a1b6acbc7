import type { Attempt, RunDetail, Schedule } from "./types";

/** The schedules that train, and so start runs. */
export const TRAINING: ReadonlySet<Schedule> = new Set<Schedule>([
  "train",
  "train_and_evaluate",
  "continuous_train_and_evaluate",
  "test",
]);

/** The attempts that trained the run, without those of jobs that only read its snapshots. */
export function selectTrainingAttempts(run: Pick<RunDetail, "attempts" | "jobs">): Attempt[] {
  const jobs = new Set(run.jobs.filter((job) => TRAINING.has(job.schedule)).map((job) => job.id));
  return run.attempts.filter((attempt) => jobs.has(attempt.job_id));
}
