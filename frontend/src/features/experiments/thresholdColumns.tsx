import type { Experiment, Threshold } from "@/api/types";
import { formatCompact, formatCount, formatPlural, formatValue } from "@/lib/format";
import { writeThresholdKey } from "@/lib/thresholdKeys";
import type { Column } from "@/ui/DataTable";
import classes from "./ExperimentsPage.module.css";

/** Thresholds that have a column unless the URL says which. */
const SHOWN_FIRST = 1;
/** Thresholds that may have a column, at most. */
export const MOST_SHOWN = 8;
/** Width of a column in pixels. */
export const THRESHOLD_WIDTH = 142;
const NONE = "none";

/** The keys whose values the list must be asked for. */
export function listThresholdKeys(thresholds: readonly Threshold[]): string[] {
  return thresholds.flatMap(({ name }) => [
    writeThresholdKey(name),
    writeThresholdKey(name, "runs"),
  ]);
}

/** The thresholds that have a column: those that the URL names, or else the first one. */
export function chooseThresholds(
  thresholds: readonly Threshold[],
  written: string | undefined,
  sort: string,
): Threshold[] {
  const sorted = thresholds.find(({ name }) => sort.replace(/^-/, "") === writeThresholdKey(name));
  const named = written?.split(",");
  const chosen = thresholds.filter(({ name }, place) =>
    named === undefined ? place < SHOWN_FIRST : named.includes(name),
  );
  return sorted === undefined || chosen.includes(sorted)
    ? chosen.slice(0, MOST_SHOWN)
    : [...chosen.slice(0, MOST_SHOWN - 1), sorted];
}

/** What the URL says of the thresholds that have a column. */
export function writeThresholds(names: readonly string[]): string {
  return names.join(",") || NONE;
}

/** The columns of the list with those of thresholds behind the latest evaluation. */
export function addThresholds(
  columns: readonly Column<Experiment>[],
  shown: readonly Threshold[],
): Column<Experiment>[] {
  if (shown.length === 0) return [...columns];
  // The ID, which is also the title of the name, makes room.
  const others = columns.filter((one) => one.id !== "id");
  const place = others.findIndex((one) => one.id === "score") + 1;
  return [...others.slice(0, place), ...shown.map(thresholdColumn), ...others.slice(place)];
}

/** A column of the env_step at which half of the runs of an experiment had reached a threshold. */
export function thresholdColumn(threshold: Threshold): Column<Experiment> {
  const key = writeThresholdKey(threshold.name);
  return {
    id: key,
    header: `Reached ${threshold.name}`,
    width: THRESHOLD_WIDTH,
    align: "right",
    hide: "medium",
    cell: (row) => <Reached row={row} threshold={threshold} />,
  };
}

function Reached({ row, threshold }: { row: Experiment; threshold: Threshold }) {
  const step = row.values?.[writeThresholdKey(threshold.name)];
  const count = row.values?.[writeThresholdKey(threshold.name, "runs")];
  // The list is asked for these values once the thresholds are known.
  if (typeof count !== "number") return null;
  const runs = Object.values(row.runs).reduce((sum, n) => sum + n, 0);
  return (
    <span className={classes.reached} title={describeReached(row, threshold, runs, count)}>
      {typeof step === "number" ? <b>{formatCompact(step)}</b> : <span className="faint">–</span>}
      <span className={classes.of}>
        {count} of {runs}
      </span>
    </span>
  );
}

function describeReached(
  row: Experiment,
  threshold: Threshold,
  runs: number,
  count: number,
): string {
  const { name, series, direction, value } = threshold;
  const bound = direction === "at_least" ? "at least" : "at most";
  const reached = `${count} of ${formatPlural(runs, "run")} reached ${series} of ${bound} ${formatValue(value)}`;
  const step = row.values?.[writeThresholdKey(name)];
  if (typeof step === "number")
    return `${reached}; median ${formatCount(step)} env_steps, where runs that have not come last.`;
  return count === 0
    ? `${reached}.`
    : `${reached}; there is a median once more than half of the runs have.`;
}
