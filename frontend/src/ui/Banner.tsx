import type { ReactNode } from "react";
import classes from "./Banner.module.css";
import { IconAlertTriangle, IconCircleX } from "./icons";

interface BannerProps {
  tone: "bad" | "warn";
  /** What happened, in a few words. */
  title: ReactNode;
  /** The server's message. */
  message?: string | null;
  traceback?: string | null | undefined;
  /** What can be done about it. */
  actions?: ReactNode;
  children?: ReactNode;
}

/** A failure or warning at the top of a page. */
export function Banner({ tone, title, message, traceback, actions, children }: BannerProps) {
  const Icon = tone === "bad" ? IconCircleX : IconAlertTriangle;
  return (
    <section className={classes.banner} data-tone={tone} role={tone === "bad" ? "alert" : "status"}>
      <Icon size={18} stroke={1.8} />
      <div className={classes.text}>
        <strong>{title}</strong>
        {message && <p>{message}</p>}
        {children}
        {traceback && (
          <details>
            <summary>Traceback</summary>
            <pre>{traceback}</pre>
          </details>
        )}
      </div>
      {actions && <div className={classes.actions}>{actions}</div>}
    </section>
  );
}
