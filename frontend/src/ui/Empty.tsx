import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { isPassing } from "@/lib/outage";
import { CodeBlock } from "./Bits";
import classes from "./Empty.module.css";
import { IconRefresh } from "./icons";

interface EmptyProps {
  title: string;
  children?: ReactNode;
  /** The exact command that would fill this place. */
  command?: string;
  small?: boolean;
}

/** An empty place that says how to fill it. */
export function Empty({ title, children, command, small = false }: EmptyProps) {
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

interface Explained {
  message: string;
  status?: number;
  requestId?: string | null;
  code?: string;
}

/** What went wrong, what to do, and the id under which the server's log has it. */
export function Failure({ error, retry, small = false }: { error: Explained; retry?: () => void; small?: boolean }) {
  return (
    <div className={small ? classes.small : classes.empty} role="alert">
      <strong className={classes.title}>{error.status === 404 ? "Not found" : "This could not be loaded"}</strong>
      <p className={classes.text}>{error.message}</p>
      {isPassing(error) && <p className={classes.request}>It is tried again by itself every few seconds.</p>}
      {error.requestId && (
        <p className={classes.request}>
          request <code>{error.requestId}</code>
          {error.code && (
            <>
              {" · "}
              <code>{error.code}</code>
            </>
          )}
        </p>
      )}
      {retry && (
        <Button variant="default" leftSection={<IconRefresh size={14} />} onClick={retry}>
          {isPassing(error) ? "Try now" : "Try again"}
        </Button>
      )}
    </div>
  );
}
