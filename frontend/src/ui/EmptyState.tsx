import type { ReactNode } from "react";
import { CodeBlock } from "./Copy";
import classes from "./EmptyState.module.css";

interface EmptyProps {
  title: string;
  children?: ReactNode;
  /** A command that adds something to the list. */
  command?: string;
  small?: boolean;
}

/** Shown where a list is empty: why, and the command that adds to it. */
export function EmptyState({ title, children, command, small = false }: EmptyProps) {
  return (
    <div className={small ? classes.small : classes.empty}>
      {!small && <div className={classes.meander} aria-hidden="true" />}
      <strong className={classes.title}>{title}</strong>
      {children && <p className={classes.text}>{children}</p>}
      {command && (
        <div className={classes.command}>
          <CodeBlock text={command} />
        </div>
      )}
    </div>
  );
}
