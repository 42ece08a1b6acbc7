import { useMemo } from "react";
import { readOrder } from "@/lib/sortOrder";
import type { GridColumn } from "@/ui/DataGrid";
import { ScoreText } from "@/ui/ScoreText";
import { StateCounts } from "@/ui/StateBadge";
import { useScheme } from "@/ui/scheme";
import { describeKey, isSortable, nameKey, nameStatistic } from "./columnKeys";
import { GroupName } from "./GroupName";
import { chooseColorOfGroup, chooseMetric } from "./groupKeys";
import classes from "./Runs.module.css";
import { showCell } from "./runCells";
import type { RunItem } from "./runItems";
import type { RunsState } from "./search";

const NAME = "name";
/** Room for a mean with its standard error and n. */
const MEAN_WIDTH = 210;
/** Room for the arrow of a column that sorts, and for its place among several. */
const ARROW_WIDTH = 16;
const PLACE_WIDTH = 18;

/** The keys of the columns in the order of the table: the pinned ones first. */
export function orderColumns({ columns, pinned, groupBy, sort }: RunsState): string[] {
  const metric = chooseMetric(sort);
  const isGrouped = groupBy.length > 0;
  const shown = isGrouped ? columns.filter((key) => !groupBy.includes(key)) : [...columns];
  // A group needs a name, and the metric of which it shows the mean.
  if (isGrouped && !shown.includes(NAME)) shown.unshift(NAME);
  if (isGrouped && !shown.includes(metric)) shown.push(metric);
  // Groups have a state and a mean, which stand beside their names.
  const lead = isGrouped ? [NAME, "state", metric].filter((key) => shown.includes(key)) : [];
  shown.sort((a, b) => rank(lead, a) - rank(lead, b));
  const isPinned = (key: string) => pinned.includes(key) || (isGrouped && key === NAME);
  return [...shown.filter(isPinned), ...shown.filter((key) => !isPinned(key))];
}

function rank(lead: readonly string[], key: string): number {
  const place = lead.indexOf(key);
  return place < 0 ? lead.length : place;
}

/** The width of a column that was not resized, in pixels. */
export function chooseWidth(key: string, { groupBy, sort }: RunsState): number {
  const isMean = groupBy.length > 0 && key === chooseMetric(sort);
  const order = readOrder(sort);
  const marks = ARROW_WIDTH + (order.length > 1 ? PLACE_WIDTH : 0);
  const isSorting = order.some(({ id }) => id === key);
  return (isMean ? MEAN_WIDTH : describeKey(key).width) + (isSorting ? marks : 0);
}

/** Returns the columns of the table. */
export function useRunColumns(
  state: RunsState,
  color: (runId: string) => string,
  onToggle: (id: string) => void,
): GridColumn<RunItem>[] {
  const scheme = useScheme();
  return useMemo(() => {
    const { pinned, widths, groupBy, sort } = state;
    const metric = chooseMetric(sort);
    const isGrouped = groupBy.length > 0;
    return orderColumns(state).map((key) => ({
      ...describeColumn(key),
      ...(key === NAME && isGrouped ? { name: "Group", header: "Group" } : {}),
      width: widths[key] ?? chooseWidth(key, state),
      isPinned: pinned.includes(key) || (isGrouped && key === NAME),
      cell: (item) => {
        if (item.kind === "note")
          return key === NAME ? <span className={classes.note}>{item.text}</span> : null;
        if (item.kind === "run") return showCell(item, key, color);
        const { group } = item;
        if (key === NAME)
          return (
            <GroupName
              item={item}
              color={chooseColorOfGroup(group, scheme)}
              onToggle={() => onToggle(item.id)}
            />
          );
        if (key === "state") return <StateCounts counts={group.states} />;
        if (key !== metric) return null;
        return group.mean === null ? (
          <span className="faint">no value</span>
        ) : (
          <ScoreText mean={group.mean} spread={group.stderr} kind="se" n={group.n} of="run" />
        );
      },
    }));
  }, [state, color, scheme, onToggle]);
}

export function describeColumn(
  key: string,
): Omit<GridColumn<unknown>, "width" | "isPinned" | "cell"> {
  const { title, statistic, isNumber } = describeKey(key);
  return {
    id: key,
    name: nameKey(key),
    header:
      statistic === null ? (
        title
      ) : (
        <>
          {title} <span className={classes.statistic}>{nameStatistic(statistic)}</span>
        </>
      ),
    align: isNumber ? "right" : "left",
    isSortable: isSortable(key),
  };
}
