import classes from "./ProgressBar.module.css";

interface ProgressBarProps {
  /** In [0, 1]; `null` where it is not known: no bar, and no number for screen readers. */
  share: number | null;
  tone: "active" | "done" | "idle";
  label?: string;
  text: string;
}

/** A thin bar whose length shows a share. */
export function ProgressBar({ share, tone, text, label = "Progress" }: ProgressBarProps) {
  const known = share === null ? null : Math.min(1, Math.max(0, share));
  return (
    <span
      className={classes.progress}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={known === null ? undefined : Math.floor(known * 100)}
      aria-valuetext={text}
      data-unknown={known === null || undefined}
    >
      {known !== null && <span className={classes[tone]} style={{ width: `${known * 100}%` }} />}
    </span>
  );
}
