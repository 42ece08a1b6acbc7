import { useMemo } from "react";
import { type Json, lines } from "@/lib/jsonDiff";
import classes from "./ProvenanceTab.module.css";

/** Shows a stored JSON record line by line. */
export function JsonTree({ value }: { value: unknown }) {
  const rows = useMemo(() => lines(value as Json), [value]);
  return (
    <dl className={classes.tree}>
      {rows.map((row) => (
        <div key={row.pointer} data-branch={row.kind === "branch" || undefined}>
          <dt style={{ paddingLeft: row.depth * 14 }}>{row.key}</dt>
          <dd>{row.text?.includes("\n") ? <pre>{row.text}</pre> : row.text}</dd>
        </div>
      ))}
    </dl>
  );
}
