import type { Attempt, Job, RunDetail } from "@/api/types";
import {
  formatAge,
  formatDuration,
  formatMoment,
  nameCause,
  nameSchedule,
  shortenId,
} from "@/lib/format";
import { EmptyState } from "@/ui/EmptyState";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./AttemptsTab.module.css";
import { RunJobs } from "./RunJobs";

type Code = NonNullable<Attempt["other_code"]>;

const COMPILE_HINTS: Record<NonNullable<Attempt["compile"]>, string> = {
  eager: "Updates ran without compilation; later attempts of the run keep this.",
  compiled:
    "Updates were compiled; later attempts of the run keep this, since the numbers differ by " +
    "roundings.",
  cudagraph: "Updates were compiled and replayed as CUDA graphs (resources.compile).",
};

/** Start, duration, worker and outcome of each attempt. */
export function AttemptsTab({ run }: { run: RunDetail }) {
  return (
    <div className="stack">
      <RunJobs run={run} />
      <Panel title="Attempts">
        {run.attempts.length === 0 ? (
          <EmptyState small title="No attempt yet">
            {run.jobs.find((job) => job.waiting)?.waiting ?? "No worker has claimed the job yet."}
          </EmptyState>
        ) : (
          <Timeline run={run} />
        )}
      </Panel>
    </div>
  );
}

function Timeline({ run }: { run: RunDetail }) {
  const begin = Date.parse(run.created_at);
  const ends = run.attempts.map((one) => (one.ended_at ? Date.parse(one.ended_at) : Date.now()));
  const span = Math.max(1000, Math.max(...ends) - begin);
  const jobs = new Map(run.jobs.map((job) => [job.id, job]));
  const ordered = [...run.attempts].sort(
    (a, b) => Date.parse(b.started_at) - Date.parse(a.started_at),
  );
  return (
    <ol className={classes.timeline}>
      {ordered.map((attempt) => {
        const start = Date.parse(attempt.started_at);
        const end = attempt.ended_at ? Date.parse(attempt.ended_at) : Date.now();
        const left = ((start - begin) / span) * 100;
        const width = Math.max(0.6, ((end - start) / span) * 100);
        return (
          <li key={attempt.id} className={classes.attempt}>
            <div className={classes.head}>
              <b>
                {nameSchedule(jobs.get(attempt.job_id)?.schedule ?? "job")} · attempt{" "}
                {attempt.number}
              </b>
              <StateBadge state={attempt.outcome ?? attempt.state} />
              {attempt.cause && <span className="muted">{nameCause(attempt.cause)}</span>}
              {attempt.other_code && (
                <span className={classes.bad}>
                  ran with other code: {codeName(attempt.other_code)}
                </span>
              )}
            </div>
            <div
              className={classes.track}
              title={`${formatMoment(attempt.started_at)} to ${formatMoment(attempt.ended_at)}`}
            >
              <span
                className={classes.span}
                data-outcome={attempt.outcome ?? attempt.state}
                style={{
                  left: `${Math.min(99.4, Math.max(0, left))}%`,
                  width: `${Math.min(width, 100)}%`,
                }}
              />
            </div>
            <Details
              run={run}
              attempt={attempt}
              job={jobs.get(attempt.job_id)}
              seconds={(end - start) / 1000}
            />
          </li>
        );
      })}
    </ol>
  );
}

function Details({
  run,
  attempt,
  job,
  seconds,
}: {
  run: RunDetail;
  attempt: Attempt;
  job: Job | undefined;
  seconds: number;
}) {
  const from = attempt.resumed_from[run.id];
  return (
    <div className={classes.details}>
      <span>
        {attempt.worker_name}, {describeSlots(attempt)}
      </span>
      <span title={formatMoment(attempt.started_at)}>
        {formatAge(attempt.started_at)}, for {formatDuration(seconds)}
      </span>
      <span>fence {attempt.fences[run.id] ?? "–"}</span>
      {from && (
        <span>
          from <code title={from}>{shortenId(from)}</code>
          {attempt.resume_quality && attempt.resume_quality !== "fresh"
            ? `, ${attempt.resume_quality}`
            : ""}
        </span>
      )}
      {attempt.compile && (
        <span title={COMPILE_HINTS[attempt.compile]}>{attempt.compile} updates</span>
      )}
      {attempt.simulator && (
        <span
          title={
            attempt.simulator === "palestra"
              ? "Palestra's own code computed the environments; its results equal the registered environment's to the last bit."
              : "The registered environment's own code computed the environments (resources.simulator)."
          }
        >
          {attempt.simulator === "palestra" ? "Palestra's simulator" : "registered simulator"}
        </span>
      )}
      {job && job.pool !== "default" && <span>pool {job.pool}</span>}
      {attempt.failure && <span className={classes.bad}>{attempt.failure.message}</span>}
    </div>
  );
}

function codeName(code: Code): string {
  return code.kind === "entrypoint" ? `${code.distribution} ${code.version}` : code.kind;
}

function describeSlots({ slot, slots = [] }: Attempt): string {
  return slots.length > 1 ? `slots ${slots.join(", ")}` : `slot ${slot}`;
}
