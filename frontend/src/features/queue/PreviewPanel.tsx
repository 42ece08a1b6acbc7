import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type PreviewedChange, previewChange } from "@/api/actions";
import type { ChangePreview, Job } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { describePreview, describeShift } from "./changeWords";
import { JobName } from "./JobName";
import classes from "./Preview.module.css";

/** Jobs that are listed by name. */
const MOST_LISTED = 5;

interface PreviewPanelProps {
  /** What would be changed; `null` for nothing. */
  wanted: PreviewedChange | null;
  /** The loaded jobs by ID: only these are named. */
  jobs: ReadonlyMap<string, Job>;
}

/** What a change of waiting jobs would do, as the server computes it. */
export function PreviewPanel({ wanted, jobs }: PreviewPanelProps) {
  const query = useQuery({
    queryKey: ["preview of a change", wanted],
    queryFn: ({ signal }) => previewChange(wanted as PreviewedChange, signal),
    enabled: wanted !== null,
    staleTime: 5_000,
    gcTime: 0,
    retry: false,
  });
  return (
    <section className={classes.preview} aria-label="Preview" aria-live="polite">
      {wanted === null ? (
        <p className="muted">Change something, and the effect on the queue is shown here.</p>
      ) : query.isError ? (
        <p className={classes.refusal}>{query.error.message}</p>
      ) : query.data === undefined ? (
        <Skeleton height={16} width="80%" aria-busy="true" />
      ) : (
        <Effect found={query.data} jobs={jobs} />
      )}
    </section>
  );
}

function Effect({ found, jobs }: { found: ChangePreview; jobs: ReadonlyMap<string, Job> }) {
  const known = found.own_starts.flatMap((one) => {
    const job = jobs.get(one.job_id);
    return job ? [{ job, one }] : [];
  });
  const shown = known.slice(0, MOST_LISTED);
  const own = found.own.earlier + found.own.later;
  return (
    <>
      <p className={classes.sentence}>{describePreview(found)}</p>
      {shown.length > 0 && (
        <ul className={classes.shifts}>
          {shown.map(({ job, one }) => (
            <li key={job.id}>
              <JobName job={job} linked={false} />
              <span className="faint">{describeShift(one)}</span>
            </li>
          ))}
        </ul>
      )}
      {own > shown.length && shown.length > 0 && (
        <p className="faint">and {formatPlural(own - shown.length, "more job")} of yours</p>
      )}
      {found.jobs_left > 0 && (
        <p className="faint">
          Computed for the first {formatCount(found.jobs)} jobs; {formatCount(found.jobs_left)} more
          are selected.
        </p>
      )}
      {found.refused.length > 0 && (
        <p className={classes.refusal}>
          {formatPlural(found.refused.length, "job")} would be refused: {found.refused[0]?.detail}
        </p>
      )}
    </>
  );
}
