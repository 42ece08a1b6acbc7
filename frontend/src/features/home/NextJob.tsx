import { Link } from "@tanstack/react-router";
import type { Job, Overview } from "@/api/types";
import {
  formatAge,
  formatCount,
  formatMoment,
  formatPlural,
  splitExperimentId,
} from "@/lib/format";
import { formatStart, hintStart } from "@/lib/startEstimate";
import { EmptyState } from "@/ui/EmptyState";
import { Panel } from "@/ui/Page";
import classes from "./Home.module.css";

/** Place, estimate and reason of the caller's job that starts first. */
export function NextJob({ overview }: { overview: Overview }) {
  const { next_job: job, waiting, paused } = overview;
  const others = [
    waiting > 1 ? `${formatCount(waiting)} of yours wait` : null,
    paused > 0 ? `${formatCount(paused)} paused` : null,
  ].filter((part) => part !== null);
  return (
    <Panel
      title="Your next job"
      aside={others.length > 0 && <span className="faint">{others.join(", ")}</span>}
    >
      {job === null ? (
        <EmptyState title="No job of yours waits" small>
          {paused > 0
            ? `${formatPlural(paused, "job")} of yours ${paused === 1 ? "is" : "are"} paused; resume them on the queue page.`
            : "What you submit waits in the queue; its place and the time of its start are shown here."}
        </EmptyState>
      ) : (
        <Place job={job} />
      )}
    </Panel>
  );
}

function Place({ job }: { job: Job }) {
  const { slug } = splitExperimentId(job.experiment_id);
  return (
    <div className={classes.next}>
      <Link
        className={classes.place}
        to="/p/$project/queue"
        params={{ project: job.project }}
        search={{ pool: job.pool }}
        aria-label={`The queue of ${job.pool}`}
      >
        <span className={classes.number}>
          {job.position === null ? "–" : formatCount(job.position)}
        </span>
        <span className="faint">{job.position === null ? "no place yet" : `in ${job.pool}`}</span>
      </Link>
      <div className={classes.words}>
        <Link
          to="/p/$project/experiments/$experimentId"
          params={{ project: job.project, experimentId: job.experiment_id }}
        >
          {slug}
        </Link>
        <span className={classes.start} title={hintStart(job.estimate)}>
          {formatStart(job.estimate)}
        </span>
        <span className="muted">{job.waiting}</span>
        <span className="faint" title={formatMoment(job.created_at)}>
          submitted {formatAge(job.created_at)}, class {job.priority_class}
        </span>
      </div>
    </div>
  );
}
