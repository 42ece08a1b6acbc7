import { type ReactNode, useEffect } from "react";
import classes from "./Page.module.css";

interface PageProps {
  /** Browser title and heading. */
  title: string;
  heading?: ReactNode;
  crumbs?: ReactNode;
  /** Facts below the heading. */
  facts?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** The frame of a page: breadcrumbs, heading, actions and content. */
export function Page({ title, heading, crumbs, facts, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Palestra`;
  }, [title]);
  return (
    <main className={classes.page} id="main">
      <header className={classes.header}>
        <div className={classes.text}>
          {crumbs && (
            <nav className={classes.crumbs} aria-label="Breadcrumb">
              {crumbs}
            </nav>
          )}
          <h1 className={classes.heading}>{heading ?? title}</h1>
          {facts && <div className={classes.facts}>{facts}</div>}
        </div>
        {actions && <div className={classes.actions}>{actions}</div>}
      </header>
      {children}
    </main>
  );
}

interface PanelProps {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  /** Content reaches the panel's edges, for tables. */
  flush?: boolean;
  className?: string | undefined;
  id?: string;
}

/** A bordered section with a heading. */
export function Panel({ title, aside, children, flush = false, className, id }: PanelProps) {
  return (
    <section className={`${classes.panel} ${className ?? ""}`} id={id}>
      {(title || aside) && (
        <header className={classes.panelHeader}>
          <h2>{title}</h2>
          {aside && <div className={classes.aside}>{aside}</div>}
        </header>
      )}
      <div className={flush ? classes.flush : classes.body}>{children}</div>
    </section>
  );
}
