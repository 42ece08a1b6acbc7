import { formatPlural, formatScore, formatSpread, toNumber } from "@/lib/format";
import classes from "./ScoreText.module.css";

/**
 * The meaning of a `±`. The label is always shown: standard deviation, standard error and interval
 * differ by factors.
 */
export type SpreadKind = "sd" | "se" | "ci95";

const KINDS: Record<SpreadKind, { short: string; long: string }> = {
  sd: { short: "sd", long: "standard deviation" },
  se: { short: "se", long: "standard error" },
  ci95: { short: "95 %", long: "half the width of the 95 % confidence interval" },
};

interface ScoreTextProps {
  mean: number | string;
  /** As it was measured; `null` where it is unknown. It is never shown for a single value. */
  spread: number | string | null;
  kind: SpreadKind;
  /** How many values the mean is over. */
  n: number;
  /** What they are, in the singular. */
  of: "run" | "episode";
}

/**
 * A mean with its spread, the kind of the spread, and the number of values. One value has no
 * spread.
 */
export function ScoreText({ mean, spread, kind, n, of }: ScoreTextProps) {
  const known = n > 1 && spread !== null && Number.isFinite(toNumber(spread));
  const { short, long } = KINDS[kind];
  const deviation = known ? ` ± ${toNumber(spread)} (${long})` : "";
  const exact = `${toNumber(mean)}${deviation}, over ${formatPlural(n, of)}`;
  return (
    <span className={classes.score} title={exact}>
      <b>{formatScore(mean, known ? spread : null)}</b>
      {known && (
        <span className="faint">
          {" "}
          ± {formatSpread(spread)} <small>{short}</small>
        </span>
      )}
      <span className={classes.n}>
        n = {n}
        <span className="hidden-visually"> {n === 1 ? of : `${of}s`}</span>
      </span>
    </span>
  );
}
