import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import type { CSSProperties, ReactNode } from "react";
import { percent, score, value } from "@/lib/format";
import classes from "./Bits.module.css";
import { IconCheck, IconCopy } from "./icons";

/** A thin bar; `fraction` outside of [0, 1] or `null` shows an empty one. */
export function ProgressBar({
  fraction,
  alive = false,
  label,
}: {
  fraction: number | null;
  alive?: boolean;
  label?: string;
}) {
  const width = `${Math.min(1, Math.max(0, fraction ?? 0)) * 100}%`;
  return (
    <span
      className={classes.progress}
      role="progressbar"
      aria-label={label ?? "Progress"}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round((fraction ?? 0) * 100)}
      aria-valuetext={percent(fraction)}
    >
      <span className={alive ? classes.alive : classes.fill} style={{ width }} />
    </span>
  );
}

/** The dot of a group or run in its colour. */
export function Dot({ color, hollow = false }: { color: string; hollow?: boolean }) {
  return (
    <span className={classes.dot} style={hollow ? { boxShadow: `inset 0 0 0 2px ${color}` } : { background: color }} />
  );
}

interface ScoreProps {
  mean: number | string;
  spread: number | string;
  n?: number | undefined;
  unit?: string;
}

/** A mean with its spread and how many it is over: a score without n says nothing. */
export function ScoreText({ mean, spread, n, unit = "n" }: ScoreProps) {
  return (
    <span className={classes.score}>
      <b>{score(mean, spread)}</b>
      <span className="faint"> ± {value(spread, 2)}</span>
      {n !== undefined && (
        <span className={classes.n}>
          {unit} = {n}
        </span>
      )}
    </span>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  return (
    <Tooltip label={clipboard.copied ? "Copied" : label}>
      <ActionIcon aria-label={label} onClick={() => clipboard.copy(text)} size={24}>
        {clipboard.copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}

/** A command or code to copy. */
export function CodeBlock({ text, label }: { text: string; label?: string }) {
  return (
    <div className={classes.code}>
      <pre title={label}>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}

/** Name and value side by side. */
export function Facts({ items, style }: { items: readonly (readonly [string, ReactNode])[]; style?: CSSProperties }) {
  return (
    <dl className={classes.facts} style={style}>
      {items.map(([name, content]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{content}</dd>
        </div>
      ))}
    </dl>
  );
}
