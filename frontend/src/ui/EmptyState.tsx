import type { ReactNode } from "react";
import { CodeBlock } from "./Copy";
import classes from "./EmptyState.module.css";

interface EmptyProps {
  title: string;
  children?: ReactNode;
  /** A command that adds something to the list. */
  command?: string;
  /** Buttons that lead on. */
  actions?: ReactNode;
  small?: boolean;
}

/** Shows why a list is empty, and the command that adds an item. */
export function EmptyState(props: EmptyProps) {
  const { title, children, command, actions, small = false } = props;
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
      {actions && <div className={classes.actions}>{actions}</div>}
    </div>
  );
}
