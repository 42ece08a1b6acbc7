import type { GroupStatistics } from "@/api/types";
import { formatPlural, formatValue } from "@/lib/format";
import classes from "./FinalScores.module.css";

interface ScoreStripProps {
  scores: GroupStatistics["scores"];
  estimate: NonNullable<GroupStatistics["aggregates"]["iqm"]> | null;
  domain: readonly [number, number];
  color: string;
}

/** Scores of runs on one line, over the interval of their interquartile mean. */
export function ScoreStrip({ scores, estimate, domain: [low, high], color }: ScoreStripProps) {
  const toX = (value: number) => (high > low ? 2 + (96 * (value - low)) / (high - low) : 50);
  const ends =
    estimate && estimate.low !== null && estimate.high !== null
      ? ([toX(estimate.low), toX(estimate.high)] as const)
      : null;
  return (
    <span
      className={classes.strip}
      role="img"
      aria-label={`${formatPlural(scores.length, "score")}: ${scores
        .map((one) => `seed ${one.seed} ${formatValue(one.score)}`)
        .join(", ")}`}
    >
      {ends !== null && (
        <i
          className={classes.interval}
          style={{
            left: `${ends[0]}%`,
            width: `${Math.max(0.5, ends[1] - ends[0])}%`,
            background: color,
          }}
        />
      )}
      {estimate && (
        <i
          className={classes.estimate}
          style={{ left: `${toX(estimate.value)}%`, background: color }}
        />
      )}
      {scores.map((one) => (
        <i
          key={one.run_id}
          className={classes.dot}
          style={{ left: `${toX(one.score)}%`, borderColor: color }}
          title={`seed ${one.seed}: ${formatValue(one.score)}`}
        />
      ))}
    </span>
  );
}
