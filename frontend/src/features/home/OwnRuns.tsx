import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Overview, Run } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import {
  formatAge,
  formatCompact,
  formatCount,
  formatMoment,
  nameCause,
  splitExperimentId,
} from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import { type Column, DataTable } from "@/ui/DataTable";
import { Dot } from "@/ui/Dot";
import { EmptyState } from "@/ui/EmptyState";
import { HealthMark } from "@/ui/HealthMark";
import { Panel } from "@/ui/Page";
import { ProgressBar } from "@/ui/ProgressBar";
import { useScheme } from "@/ui/scheme";
import classes from "./Home.module.css";

/** A run by the name of its experiment and its seed. */
export function RunName({ run, linked = true }: { run: Run; linked?: boolean }) {
  const scheme = useScheme();
  const { slug } = splitExperimentId(run.experiment_id);
  return (
    <span className={classes.run} title={`${run.experiment_id}\n${run.id}`}>
      <Dot color={chooseGroupColor(run.experiment_id, scheme)} />
      <span className="clip">
        {linked ? (
          <Link to="/p/$project/runs/$runId" params={{ project: run.project, runId: run.id }}>
            {slug}
          </Link>
        ) : (
          slug
        )}
      </span>
      <span className={classes.seed}>seed {run.seed}</span>
      <HealthMark findings={run.findings} />
    </span>
  );
}

const NAME: Column<Run> = { id: "run", header: "Run", cell: (run) => <RunName run={run} /> };

const RUNNING: Column<Run>[] = [
  NAME,
  {
    id: "progress",
    header: "Progress",
    width: 132,
    cell: (run) => {
      const { share, text, tone } = computeProgress({
        state: run.state,
        cause: run.cause,
        fraction: run.progress.fraction,
      });
      return (
        <span className={classes.progress}>
          <ProgressBar share={share} tone={tone} text={text} label={`Progress of ${run.id}`} />
          {text}
        </span>
      );
    },
  },
  {
    id: "steps",
    header: "env_steps",
    width: 84,
    align: "right",
    hide: "narrow",
    cell: (run) => formatCompact(run.progress.env_step),
  },
  {
    id: "since",
    header: "Started",
    width: 92,
    align: "right",
    hide: "narrow",
    cell: (run) => <span title={formatMoment(run.started_at)}>{formatAge(run.started_at)}</span>,
  },
];

const FAILED: Column<Run>[] = [
  { ...NAME, width: "34%" },
  {
    id: "cause",
    header: "Cause",
    wrap: true,
    cell: (run) => (
      <span className={classes.cause}>
        <b>{run.cause === null ? "failed" : nameCause(run.cause)}</b>
        {run.failure && <span className="muted">{run.failure.message}</span>}
      </span>
    ),
  },
  {
    id: "ended",
    header: "Failed",
    width: 92,
    align: "right",
    hide: "narrow",
    cell: (run) => <span title={formatMoment(run.finished_at)}>{formatAge(run.finished_at)}</span>,
  },
];

function Runs({
  label,
  runs,
  columns,
}: {
  label: string;
  runs: readonly Run[];
  columns: Column<Run>[];
}) {
  const navigate = useNavigate();
  const rows = useMemo(() => runs, [runs]);
  return (
    <DataTable
      label={label}
      rows={rows}
      columns={columns}
      rowId={(run) => run.id}
      onOpen={(run) =>
        void navigate({
          to: "/p/$project/runs/$runId",
          params: { project: run.project, runId: run.id },
        })
      }
    />
  );
}

function Shown({ shown, total }: { shown: number; total: number }) {
  return (
    <span className="faint">
      {shown < total ? `${formatCount(shown)} of ${formatCount(total)}` : formatCount(total)}
    </span>
  );
}

export function RunningRuns({ overview }: { overview: Overview }) {
  const { running, running_total: total } = overview;
  return (
    <Panel
      title="Your running runs"
      flush
      aside={total > 0 && <Shown shown={running.length} total={total} />}
    >
      {running.length === 0 ? (
        <EmptyState title="None of your runs is training" small>
          A run is listed here from its start to its end, with its progress.
        </EmptyState>
      ) : (
        <Runs label="Your running runs" runs={running} columns={RUNNING} />
      )}
    </Panel>
  );
}

export function FailedRuns({ overview }: { overview: Overview }) {
  const { failed, failed_total: total } = overview;
  return (
    <Panel
      title="Your failed runs of the last 7 days"
      flush
      aside={<Shown shown={failed.length} total={total} />}
    >
      <Runs label="Your failed runs" runs={failed} columns={FAILED} />
    </Panel>
  );
}
