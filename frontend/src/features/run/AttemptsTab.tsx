import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { type Reading, reading } from "@/api/definition";
import { snapshotsQuery } from "@/api/queries";
import type { Attempt, Job, RunDetail, Snapshot } from "@/api/types";
import { ago, bytes, count, duration, moment, scheduleName, shortId, toNumber, value } from "@/lib/format";
import { problemOf } from "@/lib/outage";
import { type Column, DataTable } from "@/ui/DataTable";
import { Empty, Failure } from "@/ui/Empty";
import { Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/State";
import classes from "./AttemptsTab.module.css";
import { RunJobs } from "./RunJobs";

/** When which worker worked on the run, and what was saved. */
export function AttemptsTab({ run }: { run: RunDetail }) {
  return (
    <div className="stack">
      <RunJobs run={run} />
      <Panel title="Attempts">
        {run.attempts.length === 0 ? (
          <Empty small title="No attempt yet">
            {run.jobs.find((job) => job.waiting)?.waiting ?? "A worker has not taken the job yet."}
          </Empty>
        ) : (
          <Timeline run={run} />
        )}
      </Panel>
      <Snapshots run={run} />
    </div>
  );
}

function Timeline({ run }: { run: RunDetail }) {
  const begin = Date.parse(run.created_at);
  const ends = run.attempts.map((one) => (one.ended_at ? Date.parse(one.ended_at) : Date.now()));
  const span = Math.max(1000, Math.max(...ends) - begin);
  const jobs = new Map(run.jobs.map((job) => [job.id, job]));
  const ordered = [...run.attempts].sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at));
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
                {scheduleName(jobs.get(attempt.job_id)?.schedule ?? "job")} · attempt {attempt.number}
              </b>
              <StateBadge state={attempt.outcome ?? attempt.state} />
              {attempt.cause && <span className="muted">{attempt.cause.replaceAll("_", " ")}</span>}
            </div>
            <div className={classes.track} title={`${moment(attempt.started_at)} to ${moment(attempt.ended_at)}`}>
              <span
                className={classes.span}
                data-outcome={attempt.outcome ?? attempt.state}
                style={{ left: `${Math.min(99.4, Math.max(0, left))}%`, width: `${Math.min(width, 100)}%` }}
              />
            </div>
            <Details run={run} attempt={attempt} job={jobs.get(attempt.job_id)} seconds={(end - start) / 1000} />
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
        {attempt.worker_name}, slot {attempt.slot}
      </span>
      <span title={moment(attempt.started_at)}>
        {ago(attempt.started_at)}, for {duration(seconds)}
      </span>
      <span>fence {attempt.fences[run.id] ?? "–"}</span>
      {from && (
        <span>
          from <code title={from}>{shortId(from)}</code>
          {attempt.resume_quality && attempt.resume_quality !== "fresh" ? `, ${attempt.resume_quality}` : ""}
        </span>
      )}
      {job && job.pool !== "default" && <span>pool {job.pool}</span>}
      {attempt.failure && <span className={classes.bad}>{attempt.failure.message}</span>}
    </div>
  );
}

const at = (counter: Reading["counter"]): Column<Snapshot> => ({
  id: counter,
  header: counter.replace("_", " "),
  width: 110,
  align: "right",
  sort: (row) => row[counter],
  cell: (row) => <b>{count(row[counter])}</b>,
});

const COLUMNS: Column<Snapshot>[] = [
  {
    id: "marks",
    header: "Kept as",
    width: 170,
    cell: (row) => (
      <span className="row">
        {row.newest && <span className={classes.mark}>newest</span>}
        {row.best && <span className={classes.mark}>best</span>}
        {row.superseded && <span className="faint">superseded</span>}
        {row.state !== "verified" && <span className="faint">{row.state}</span>}
      </span>
    ),
  },
  {
    id: "score",
    header: "Score",
    width: 84,
    align: "right",
    sort: (row) => toNumber(row.score),
    cell: (row) => value(row.score),
  },
  { id: "reason", header: "Why", width: 100, hide: "narrow", cell: (row) => row.reason },
  {
    id: "resume",
    header: "Resume",
    width: 100,
    hide: "narrow",
    cell: (row) => (row.resume_exact ? "exact" : "statistical"),
  },
  {
    id: "size",
    header: "Size",
    width: 96,
    align: "right",
    hide: "narrow",
    sort: (row) => row.size,
    cell: (row) => bytes(row.size),
  },
  { id: "id", header: "ID", hide: "medium", cell: (row) => <code className="faint">{row.id}</code> },
  {
    id: "at",
    header: "When",
    width: 100,
    align: "right",
    sort: (row) => row.created_at,
    cell: (row) => <span title={moment(row.created_at)}>{ago(row.created_at)}</span>,
  },
];

function Snapshots({ run }: { run: RunDetail }) {
  const query = useQuery(snapshotsQuery(run.id));
  const problem = problemOf(query);
  const rows = (query.data ?? []).filter((row) => row.state !== "deleted");
  const columns = useMemo(() => [at(reading(run.definition).counter), ...COLUMNS], [run.definition]);
  return (
    <Panel title="Snapshots" flush>
      {problem !== null && query.data === undefined ? (
        <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton height={120} radius={0} />
      ) : rows.length === 0 ? (
        <Empty small title="No snapshot yet">
          {saving(run)}
        </Empty>
      ) : (
        <DataTable label="Snapshots" rows={rows} columns={columns} rowId={(row) => row.id} />
      )}
    </Panel>
  );
}

function saving(run: RunDetail): string {
  const { saveEvery: every, unit } = reading(run.definition);
  return every
    ? `The run is saved every ${count(every)} ${unit}, at a pause and at its end.`
    : "The run is saved at a pause and at its end.";
}
