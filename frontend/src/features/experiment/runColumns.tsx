import { Link } from "@tanstack/react-router";
import { type Measures, readScore } from "@/api/definition";
import type { Evaluation, Run } from "@/api/types";
import {
  formatCompact,
  formatCount,
  formatDuration,
  formatValue,
  nameCause,
  toNumber,
} from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import type { Column } from "@/ui/DataTable";
import { Dot } from "@/ui/Dot";
import { HealthMark } from "@/ui/HealthMark";
import { ProgressBar } from "@/ui/ProgressBar";
import { ScoreText } from "@/ui/ScoreText";
import { StateBadge } from "@/ui/StateBadge";
import classes from "./RunsPanel.module.css";

const LOW = Number.NEGATIVE_INFINITY;

export function runColumns(
  color: (run: Run) => string,
  hidden: ReadonlySet<number>,
  toggle: (seed: number) => void,
  measures: Measures,
): Column<Run>[] {
  return [
    {
      id: "seed",
      header: "Seed",
      width: 74,
      sort: (run) => run.seed,
      cell: (run) => (
        <span className={classes.seedCell}>
          <button
            type="button"
            className={classes.toggle}
            onClick={() => toggle(run.seed)}
            aria-pressed={!hidden.has(run.seed)}
            aria-label={`Show seed ${run.seed} in the chart`}
            title="Show or hide in the chart"
          >
            <Dot color={color(run)} hollow={hidden.has(run.seed)} />
          </button>
          <Link to="/p/$project/runs/$runId" params={{ project: run.project, runId: run.id }}>
            {run.seed}
            {run.replicate > 0 && <span className="faint"> #{run.replicate}</span>}
          </Link>
        </span>
      ),
    },
    {
      id: "state",
      header: "State",
      width: 138,
      sort: (run) => run.state,
      cell: (run) => (
        <span className={classes.state}>
          <StateBadge state={run.state} phase={run.phase} />
          <HealthMark findings={run.findings} />
        </span>
      ),
    },
    {
      id: "progress",
      header: "Progress",
      hide: "narrow",
      sort: (run) => computeProgress(describeEnding(run)).share ?? LOW,
      cell: (run) => <RunProgress run={run} measures={measures} />,
    },
    {
      id: "latest",
      header: "Latest evaluation",
      width: 156,
      align: "right",
      sort: (run) => toNumber(run.latest_evaluation?.mean ?? LOW),
      cell: (run) => {
        const latest = run.latest_evaluation;
        return latest ? (
          <Score evaluation={latest} measures={measures} />
        ) : (
          <span className="faint">none yet</span>
        );
      },
    },
    {
      id: "best",
      header: "Best",
      width: 64,
      align: "right",
      hide: "narrow",
      sort: (run) => toNumber(run.best_evaluation?.mean ?? LOW),
      cell: (run) =>
        formatValue(run.best_evaluation ? readScore(run.best_evaluation, measures) : undefined),
    },
    {
      id: "steps",
      header: measures.unit,
      width: 80,
      align: "right",
      hide: "narrow",
      sort: (run) => run.progress[measures.counter],
      cell: (run) => formatCompact(run.progress[measures.counter]),
    },
    {
      id: "speed",
      header: "steps/s",
      width: 70,
      align: "right",
      hide: "medium",
      sort: (run) => run.progress.env_steps_per_second ?? LOW,
      cell: (run) =>
        run.state === "running" && !run.phase
          ? formatValue(run.progress.env_steps_per_second, 3)
          : "–",
    },
    {
      id: "time",
      header: "Time",
      width: 96,
      align: "right",
      hide: "medium",
      sort: elapsed,
      cell: (run) => (run.started_at ? formatDuration(elapsed(run)) : "–"),
    },
  ];
}

function describeEnding(run: Run) {
  return { state: run.state, cause: run.cause, fraction: run.progress.fraction };
}

function RunProgress({ run, measures }: { run: Run; measures: Measures }) {
  if (run.state === "failed") {
    const why =
      run.failure?.message ?? (run.cause === null ? "for an unknown reason" : nameCause(run.cause));
    return (
      <span className={classes.why} title={why}>
        {why}
      </span>
    );
  }
  if (run.not_uploaded?.delivering) {
    return (
      <span className={classes.late} title={run.not_uploaded.message}>
        {run.not_uploaded.message}
      </span>
    );
  }
  const { share, text, hint, tone } = computeProgress(describeEnding(run));
  const done = `${formatCount(run.progress[measures.counter])} ${measures.unit}`;
  return (
    <span className={classes.progress} title={hint ? `${hint}: ${done}` : done}>
      <ProgressBar
        share={share}
        tone={tone}
        text={hint ?? text}
        label={`Progress of seed ${run.seed}`}
      />
      <span className="number muted">{text}</span>
    </span>
  );
}

function Score({ evaluation, measures }: { evaluation: Evaluation; measures: Measures }) {
  if (measures.metric === null)
    return (
      <ScoreText
        mean={evaluation.mean}
        spread={evaluation.stdev}
        kind="sd"
        n={evaluation.episodes}
        of="episode"
      />
    );
  return (
    <>
      <span className="faint">{measures.metric} </span>
      <b className="number">{formatValue(readScore(evaluation, measures), 4)}</b>
    </>
  );
}

function elapsed(run: Run): number {
  if (!run.started_at) return 0;
  return (
    ((run.finished_at ? Date.parse(run.finished_at) : Date.now()) - Date.parse(run.started_at)) /
    1000
  );
}
