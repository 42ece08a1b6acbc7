import classes from "./Dot.module.css";

/** The dot of a group or run in its colour. */
export function Dot({ color, hollow = false }: { color: string; hollow?: boolean }) {
  return (
    <span
      className={classes.dot}
      style={hollow ? { boxShadow: `inset 0 0 0 2px ${color}` } : { background: color }}
    />
  );
}
