import { Tooltip } from "@mantine/core";
import { listMeasures, type Measures, readScore } from "@/api/definition";
import { selectTrainingAttempts } from "@/api/schedules";
import type { RunDetail } from "@/api/types";
import { formatCount, formatDuration, formatPlural, formatValue } from "@/lib/format";
import { computeProgress } from "@/lib/progress";
import { CopyButton } from "@/ui/Copy";
import { IconEqual, IconWaveSine } from "@/ui/icons";
import { ProgressBar } from "@/ui/ProgressBar";
import { ScoreText } from "@/ui/ScoreText";
import classes from "./RunFacts.module.css";

const QUALITY = {
  exact: {
    icon: IconEqual,
    hint:
      "The latest attempt resumed from a snapshot bit for bit: the curve equals that of a run " +
      "without the interruption.",
  },
  statistical: {
    icon: IconWaveSine,
    hint:
      "The latest attempt resumed with a part of the state (for example without the replay " +
      "memory, or with an environment that is not deterministic): the numbers differ from those " +
      "of a run without the interruption, their distribution does not.",
  },
} as const;

/** Shows the quality of the resume of the latest attempt. */
export function QualityBadge({ quality }: { quality: RunDetail["resume_quality"] }) {
  if (quality === null || quality === "fresh") return null;
  const { icon: Icon, hint } = QUALITY[quality];
  return (
    <Tooltip label={hint} multiline maw={320}>
      <span className={classes.quality} data-testid="resume-quality">
        <Icon size={13} />
        resume: {quality}
      </span>
    </Tooltip>
  );
}

/** Progress, speed and remaining time in one line. */
export function RunFacts({ run }: { run: RunDetail }) {
  const measures = listMeasures(run.definition);
  const { fraction, env_steps_per_second: speed } = run.progress;
  const { budget, metric, unit } = measures;
  const at = run.progress[measures.counter];
  const { share, text, hint, tone } = computeProgress({
    state: run.state,
    cause: run.cause,
    fraction,
  });
  const latest = run.latest_evaluation;
  const attempts = selectTrainingAttempts(run).length;
  return (
    <>
      <span className={classes.bar} title={hint ?? undefined}>
        <ProgressBar share={share} tone={tone} text={hint ?? text} />
        {run.cause === "success_score" ? "target reached" : text}
      </span>
      <span>
        {formatCount(at)}
        {budget !== null && <span className="faint"> / {formatCount(budget)}</span>} {unit}
      </span>
      {run.state === "running" && !run.phase && speed !== null && (
        <span>
          {formatValue(speed, 3)} {metric === null ? "steps" : unit}/s
        </span>
      )}
      <TimeLeft run={run} measures={measures} />
      {latest && (
        <span>
          {metric === null ? (
            <>
              latest evaluation{" "}
              <ScoreText
                mean={latest.mean}
                spread={latest.stdev}
                kind="sd"
                n={latest.episodes}
                of="episode"
              />
            </>
          ) : (
            <>
              latest {metric} <b>{formatValue(readScore(latest, measures), 4)}</b>
            </>
          )}
        </span>
      )}
      <StepsSinceSnapshot run={run} />
      {attempts > 1 && <span>{formatPlural(attempts, "attempt")}</span>}
      <span className={classes.id}>
        <code>{run.id}</code>
        <CopyButton text={run.id} label="Copy ID" />
      </span>
    </>
  );
}

/** The number of steps since the newest snapshot on the server, which a lost worker would cost. */
function StepsSinceSnapshot({ run }: { run: RunDetail }) {
  const { written, verified } = run.snapshots;
  const over = ["succeeded", "failed", "cancelled"].includes(run.state);
  if (written === null || (over && written === verified)) return null;
  if (verified === null)
    return <span className={classes.behind}>no snapshot on the server yet</span>;
  const behind = run.progress.env_step - verified;
  return (
    <span
      className={written === verified ? undefined : classes.behind}
      title={
        `The newest snapshot on the server is of env step ${formatCount(verified)}, ` +
        `the newest written of ${formatCount(written)}`
      }
    >
      {behind > 0 ? `snapshot ${formatCount(behind)} steps behind` : "snapshot up to date"}
    </span>
  );
}

/**
 * Estimates the remaining time from the current speed. Shows nothing if the run will first reach a
 * bound on a counter whose speed is not measured, or does not train at the moment.
 */
function TimeLeft({ run, measures }: { run: RunDetail; measures: Measures }) {
  const { fraction, env_steps_per_second: speed } = run.progress;
  const { budget, stopsEarly } = measures;
  const at = run.progress[measures.counter];
  if (budget === null || !speed || run.state !== "running" || run.phase || at >= budget)
    return null;
  if (fraction !== null && fraction > at / budget) return null;
  const seconds = (budget - at) / speed;
  const rounded = seconds > 120 ? Math.round(seconds / 60) * 60 : seconds;
  return (
    <span title="The rest of the budget at the current speed">
      {stopsEarly ? "at most about" : "about"} {formatDuration(rounded).replace(/ 00 s$/, "")} left
    </span>
  );
}
