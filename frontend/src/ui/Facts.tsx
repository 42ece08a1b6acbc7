import type { CSSProperties, ReactNode } from "react";
import classes from "./Facts.module.css";

/** Shows names and values side by side. */
export function Facts({
  items,
  style,
}: {
  items: readonly (readonly [string, ReactNode])[];
  style?: CSSProperties;
}) {
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
