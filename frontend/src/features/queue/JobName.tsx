import { Link } from "@tanstack/react-router";
import type { Job } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import { splitExperimentId } from "@/lib/format";
import { Dot } from "@/ui/Dot";
import { useScheme } from "@/ui/scheme";
import classes from "./Queue.module.css";

/** The page of a job: that of its run, or that of the experiment if the job trains a pack. */
export function describeJobPlace(job: Job) {
  const [runId] = job.run_ids;
  return runId && job.run_ids.length === 1
    ? ({ to: "/p/$project/runs/$runId", params: { project: job.project, runId } } as const)
    : ({
        to: "/p/$project/experiments/$experimentId",
        params: { project: job.project, experimentId: job.experiment_id },
      } as const);
}

/** The experiment's slug, and the seed or the number of seeds in the pack. */
export function JobName({ job, linked = true }: { job: Job; linked?: boolean }) {
  const scheme = useScheme();
  const { slug, hash } = splitExperimentId(job.experiment_id);
  const name = (
    <>
      {slug} <span className="faint mono">{hash.slice(0, 6)}</span>
    </>
  );
  return (
    <span className={classes.job} title={`${job.experiment_id}\n${job.run_ids.join("\n")}`}>
      <Dot color={chooseGroupColor(job.experiment_id, scheme)} />
      <span className="clip">{linked ? <Link {...describeJobPlace(job)}>{name}</Link> : name}</span>
      <span className={classes.seed}>
        {job.seeds.length === 1 ? `seed ${job.seeds[0]}` : `${job.seeds.length} seeds`}
      </span>
    </span>
  );
}
