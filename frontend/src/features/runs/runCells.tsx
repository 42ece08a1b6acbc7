import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Run } from "@/api/types";
import {
  formatAge,
  formatCompact,
  formatDuration,
  formatMoment,
  formatValue,
  nameCause,
  splitExperimentId,
} from "@/lib/format";
import { Dot } from "@/ui/Dot";
import { StateBadge } from "@/ui/StateBadge";
import { describeKey } from "./columnKeys";
import classes from "./Runs.module.css";

type Value = string | number | boolean | null | undefined | object;

/** The value of a column of a run. */
export function readCell(run: Run, key: string): Value {
  switch (key) {
    case "name":
      return (run.values?.name as Value) ?? splitExperimentId(run.experiment_id).slug;
    case "state":
      return run.state;
    case "seed":
      return run.seed;
    case "env_step":
      return run.progress.env_step;
    case "update":
      return run.progress.update;
    case "episode":
      return run.progress.episode;
    case "created":
      return run.created_at;
    case "started":
      return run.started_at;
    case "finished":
      return run.finished_at;
    case "user":
      return run.created_by;
    case "cause":
      return run.cause;
    case "experiment":
      return run.experiment_id;
    case "project":
      return run.project;
    case "id":
      return run.id;
    default:
      return run.values?.[key] as Value;
  }
}

interface ShownRun {
  run: Run;
  /** Whether it stands below its group. */
  isMember: boolean;
}

/** Shows the value of a column of a run. */
export function showCell(
  { run, isMember }: ShownRun,
  key: string,
  color: (runId: string) => string,
): ReactNode {
  const value = readCell(run, key);
  if (key === "name")
    return <Name run={run} name={String(value)} color={color(run.id)} isMember={isMember} />;
  if (key === "state") return <State run={run} />;
  if (key === "seed") return showSeed(run);
  if (key === "cause") return value ? nameCause(String(value)) : <Nothing />;
  if (key === "created" || key === "started" || key === "finished")
    return <span title={formatMoment(value as string | null)}>{formatAge(value as string)}</span>;
  if (key === "env_step" || key === "update" || key === "episode")
    return <span title={String(value)}>{formatCompact(value as number)}</span>;
  const { kind, statistic } = describeKey(key);
  if (kind === "series" || kind === "threshold")
    return typeof value === "number" ? (
      <span title={String(value)}>
        {statistic === "env_step"
          ? formatCompact(value)
          : statistic === "seconds"
            ? formatDuration(value)
            : formatValue(value)}
      </span>
    ) : (
      <Nothing />
    );
  return showPlain(value);
}

function showSeed(run: Run): ReactNode {
  return run.replicate > 0 ? `${run.seed}.${run.replicate}` : run.seed;
}

/** Shows a value of a definition. */
export function showPlain(value: Value): ReactNode {
  if (value === null || value === undefined) return <Nothing />;
  const written = typeof value === "object" ? JSON.stringify(value) : String(value);
  return <span title={written}>{written}</span>;
}

function Nothing() {
  return <span className="faint">–</span>;
}

function State({ run }: { run: Run }) {
  return run.failure === null ? (
    <StateBadge state={run.state} phase={run.phase} />
  ) : (
    <span title={run.failure.message}>
      <StateBadge state={run.state} phase={run.phase} />
    </span>
  );
}

interface NameProps extends ShownRun {
  name: string;
  color: string;
}

function Name({ run, isMember, name, color }: NameProps) {
  return (
    <span
      className={`${classes.name} ${isMember ? classes.member : ""}`}
      title={`${run.experiment_id}\n${run.id}`}
    >
      <Dot color={color} />
      <Link to="/p/$project/runs/$runId" params={{ project: run.project, runId: run.id }}>
        {name}
      </Link>
      <span className="muted">seed {showSeed(run)}</span>
    </span>
  );
}
