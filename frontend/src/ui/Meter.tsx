import classes from "./Meter.module.css";

interface MeterProps {
  used: number;
  /** `null` for no limit: there is no bar then. */
  limit: number | null;
  label: string;
  text: string;
  /** Nothing is wrong with a full meter: it does not warn. */
  plain?: boolean;
}

/** Shows the used part of a limit; the bar changes its colour from four fifths on. */
export function Meter({ used, limit, label, text, plain = false }: MeterProps) {
  if (limit === null) return null;
  const share = limit === 0 ? 1 : Math.min(1, used / limit);
  return (
    <span className={classes.meter} data-level={plain ? "normal" : level(share)}>
      <span style={{ width: `${share * 100}%` }} />
      <meter className="hidden-visually" aria-label={label} value={share}>
        {text}
      </meter>
    </span>
  );
}

function level(share: number): string {
  return share >= 1 ? "full" : share >= 0.8 ? "high" : "normal";
}
