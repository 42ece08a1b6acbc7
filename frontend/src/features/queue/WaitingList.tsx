import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Job, WaitingQueue } from "@/api/types";
import { formatCount } from "@/lib/format";
import { useRowKeys } from "@/ui/useRowKeys";
import { buildRows, listJobs, type QueueRow } from "./lanes";
import { listMoves, type OwnOrder } from "./ownOrder";
import { useOwnDrag } from "./useOwnDrag";
import classes from "./Waiting.module.css";
import { CLASS_HINTS } from "./WaitingMenu";
import { WaitingRow } from "./WaitingRow";

const LANE = 34;
const ROW = 52;

interface WaitingListProps {
  jobs: readonly Job[];
  order: OwnOrder;
  lanes: WaitingQueue["lanes"];
  /** Which number of a lane counts the jobs that are listed; `null` if none does. */
  count: "waiting" | "mine" | null;
  me: string | undefined;
  hasSeveralProjects: boolean;
  selected: ReadonlySet<string>;
  mayControl(job: Job): boolean;
  onSelect(ids: readonly string[], isSelected: boolean): void;
  onMove(job: Job, move: { before: string | null }): void;
  onOpen(job: Job): void;
  onExplain(job: Job): void;
  onChange(job: Job): void;
  onPause(job: Job): void;
  onCancel(job: Job): void;
  /** Called when the end of the loaded jobs comes into view. */
  onEnd(): void;
}

/** The waiting jobs by class in the order in which they will start; only visible rows exist. */
export function WaitingList(props: WaitingListProps) {
  const { order, selected } = props;
  const rows = useMemo(
    () => buildRows(props.jobs, props.lanes, props.count),
    [props.jobs, props.lanes, props.count],
  );
  const jobs = useMemo(() => listJobs(rows), [rows]);
  const list = useRef<HTMLDivElement>(null);
  const visible = useVisibleRows(rows, list);
  const drag = useOwnDrag(order, props.mayControl, props.onMove);
  const latest = useRef<string | null>(null);
  const focused = useRowKeys(
    useMemo(() => jobs.map((job) => job.id), [jobs]),
    (index) => jobs[index] && props.onOpen(jobs[index]),
    (index) => visible.scrollTo(rows.findIndex((row) => row.key === jobs[index]?.id)),
  );
  const select = (job: Job, isSelected: boolean, isRange: boolean) => {
    const ids = jobs.map((one) => one.id);
    const from = isRange && latest.current !== null ? ids.indexOf(latest.current) : -1;
    const to = ids.indexOf(job.id);
    latest.current = job.id;
    props.onSelect(
      from < 0 ? [job.id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1),
      isSelected,
    );
  };
  const { onEnd } = props;
  const isAtEnd = visible.last >= rows.length - 20;
  useEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, onEnd]);
  return (
    <div ref={list} className={classes.list} style={{ height: visible.height }}>
      <ul aria-label="Waiting jobs">
        {visible.items.map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const style = { transform: `translateY(${start}px)` };
          if (row.kind === "lane")
            return (
              <li key={row.key} className={classes.laneItem} style={style}>
                <Lane row={row} />
              </li>
            );
          return (
            <li
              key={row.key}
              className={classes.item}
              style={style}
              aria-posinset={row.number + 1}
              aria-setsize={jobs.length}
            >
              <WaitingRow
                job={row.job}
                moves={listMoves(order, row.job)}
                isSelected={selected.has(row.job.id)}
                isFocused={row.number === focused}
                isMine={row.job.created_by === props.me}
                showProject={props.hasSeveralProjects}
                drag={drag.bind(row.job)}
                onSelect={select}
                onExplain={props.onExplain}
                onMove={props.onMove}
                onChange={props.onChange}
                onPause={props.onPause}
                onCancel={props.onCancel}
              />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Lane({ row }: { row: Extract<QueueRow, { kind: "lane" }> }) {
  return (
    <h3 className={classes.lane} data-class={row.priorityClass}>
      {row.priorityClass}
      {row.count !== null && <span className={classes.laneCount}>{formatCount(row.count)}</span>}
      <span className="faint">
        {row.hasNoPlace ? "without a place yet" : CLASS_HINTS[row.priorityClass]}
      </span>
    </h3>
  );
}

function useVisibleRows(rows: readonly QueueRow[], list: React.RefObject<HTMLDivElement | null>) {
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (!list.current) return;
    const top = list.current.getBoundingClientRect().top + window.scrollY;
    setMargin((old) => (Math.abs(old - top) > 1 ? top : old));
  });
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (index) => (rows[index]?.kind === "lane" ? LANE : ROW),
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 12,
    scrollMargin: margin,
    initialRect: { width: 1200, height: 900 },
  });
  const items = virtual.getVirtualItems();
  return {
    items: items.map(({ index, start }) => ({ index, start: start - margin })),
    last: items.at(-1)?.index ?? -1,
    height: virtual.getTotalSize(),
    scrollTo: (index: number) => index >= 0 && virtual.scrollToIndex(index),
  };
}
