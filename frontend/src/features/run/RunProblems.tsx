import type { Job, RunDetail } from "@/api/types";
import { nameCause, nameSchedule } from "@/lib/format";
import { Banner } from "@/ui/Banner";
import { NotUploaded } from "./NotUploaded";

/** The failures of a run. */
export function RunProblems({ run }: { run: RunDetail }) {
  return (
    <>
      <RunFailure run={run} />
      <NotUploaded run={run} />
      <InterruptedAttempt run={run} />
      <FailedJobs run={run} />
    </>
  );
}

/** Shows why the run failed, or why it is paused without a request of a user. */
function RunFailure({ run }: { run: RunDetail }) {
  const codeChanged = run.state === "paused" && run.cause === "code_changed";
  if (run.state !== "failed" && !codeChanged) return null;
  const message =
    run.failure?.message ??
    (run.state === "failed"
      ? "The attempt reported no message; its log may hold the reason."
      : null);
  return (
    <Banner
      tone={codeChanged ? "warn" : "bad"}
      title={`${run.state}: ${run.cause ? nameCause(run.cause) : "for an unknown reason"}`}
      message={message}
      traceback={run.failure?.traceback}
    />
  );
}

const INTENDED = new Set(["budget", "success_score", "user", "drain", "preempted"]);

/** Shows why the attempt before the current one ended, unless a user requested its end. */
function InterruptedAttempt({ run }: { run: RunDetail }) {
  if (run.state !== "running" && run.state !== "queued") return null;
  const ended = run.attempts.filter((one) => one.job_id === run.job_id && one.ended_at !== null);
  const last = ended.sort((a, b) => a.number - b.number).at(-1);
  if (last === undefined || last.cause === null || INTENDED.has(last.cause)) return null;
  const next =
    run.state === "queued"
      ? "the next one waits for a slot"
      : "the next one goes on from its newest snapshot";
  return (
    <Banner
      tone="warn"
      title={`attempt ${last.number} ended: ${nameCause(last.cause)}; ${next}`}
      message={last.failure?.message ?? null}
      traceback={last.failure?.traceback}
    />
  );
}

/** Shows jobs other than the training whose latest attempt failed. */
function FailedJobs({ run }: { run: RunDetail }) {
  const latest = new Map<string, Job>();
  for (const job of run.jobs) if (job.id !== run.job_id) latest.set(job.schedule, job);
  const failed = [...latest.values()].filter((job) => job.state === "failed");
  const cause = (job: Job) => (job.cause ? nameCause(job.cause) : "for an unknown reason");
  return failed.map((job) => (
    <Banner
      key={job.id}
      tone="warn"
      title={`${nameSchedule(job.schedule)} failed: ${cause(job)}`}
      message={job.failure?.message ?? null}
      traceback={job.failure?.traceback}
    />
  ));
}
