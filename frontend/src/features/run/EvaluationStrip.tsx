import type { Evaluation } from "@/api/types";
import { toNumber } from "@/lib/format";
import classes from "./EvaluationsTab.module.css";
import type { Domain } from "./evaluationDomain";

interface EvaluationStripProps {
  row: Evaluation;
  color: string;
  domain: Domain;
}

/** The episodes' returns on one line. */
export function EvaluationStrip({ row, color, domain }: EvaluationStripProps) {
  const all = row.returns.map(toNumber).filter(Number.isFinite);
  const [low, high] = domain;
  const span = high - low || 1;
  return (
    <svg
      className={classes.strip}
      viewBox="0 0 200 16"
      role="img"
      aria-label={`${all.length} episode returns`}
    >
      <line x1="0" x2="200" y1="8" y2="8" stroke="var(--line)" />
      {all.slice(0, 200).map((x, i) => (
        <circle
          // biome-ignore lint/suspicious/noArrayIndexKey: an episode has no name but its index
          key={i}
          cx={4 + ((x - low) / span) * 192}
          cy="8"
          r="3"
          fill={color}
          fillOpacity="0.45"
        />
      ))}
    </svg>
  );
}
