import { formatPercent } from "@/lib/format";
import classes from "./Usage.module.css";

interface ShareBarProps {
  /** From 0 to 1; `null` if nothing was used at all. */
  used: number | null;
  /** From 0 to 1: where the bar is marked. */
  entitled?: number;
  label: string;
}

/** A used part as a bar, with a mark at the part to which its owner is entitled. */
export function ShareBar({ used, entitled, label }: ShareBarProps) {
  const marked = entitled === undefined ? "" : `, entitled to ${formatPercent(entitled)}`;
  const text = used === null ? `nothing used${marked}` : `${formatPercent(used)}${marked}`;
  return (
    <span className={classes.share}>
      <span className={classes.bar} role="img" aria-label={`${label}: ${text}`} title={text}>
        <span
          style={{ width: `${Math.min(1, used ?? 0) * 100}%` }}
          data-over={(entitled !== undefined && (used ?? 0) > entitled) || undefined}
        />
        {entitled !== undefined && <i style={{ left: `${Math.min(1, entitled) * 100}%` }} />}
      </span>
      <span className={classes.percent}>{used === null ? "–" : formatPercent(used)}</span>
    </span>
  );
}
