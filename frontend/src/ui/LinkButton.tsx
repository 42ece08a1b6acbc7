import type { ComponentProps } from "react";
import classes from "./LinkButton.module.css";

/** A button that looks like a link, for a small action within text or beside a heading. */
export function LinkButton({ className = "", ...props }: ComponentProps<"button">) {
  return <button type="button" className={`${classes.link} ${className}`} {...props} />;
}
