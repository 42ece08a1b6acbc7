import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import type { CSSProperties, ReactNode } from "react";
import classes from "./Bits.module.css";
import { IconCheck, IconCopy } from "./icons";

interface ProgressBarProps {
  /** In [0, 1]; `null` where it is not known: no bar, and no number for screen readers. */
  share: number | null;
  tone: "alive" | "done" | "still";
  label?: string;
  text: string;
}

/** A thin bar. */
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

/** The dot of a group or run in its colour. */
export function Dot({ color, hollow = false }: { color: string; hollow?: boolean }) {
  return (
    <span className={classes.dot} style={hollow ? { boxShadow: `inset 0 0 0 2px ${color}` } : { background: color }} />
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
