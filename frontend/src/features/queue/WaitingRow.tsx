import { Checkbox } from "@mantine/core";
import type { DragEvent } from "react";
import type { Job } from "@/api/types";
import { formatAge, formatCount, formatMoment, formatPlural, nameSchedule } from "@/lib/format";
import { formatStartShort, hintStart } from "@/lib/startEstimate";
import { IconGripVertical } from "@/ui/icons";
import { JobName } from "./JobName";
import classes from "./Waiting.module.css";
import { WaitingMenu, type WaitingMenuProps } from "./WaitingMenu";

export interface RowDrag {
  /** Whether the job may be dragged. */
  enabled: boolean;
  /** Where a dragged job would be dropped on this row. */
  mark: "upper" | "lower" | undefined;
  isDragged: boolean;
  onStart(job: Job): void;
  onOver(job: Job, half: "upper" | "lower"): boolean;
  onDrop(job: Job): void;
  onEnd(): void;
}

interface WaitingRowProps extends WaitingMenuProps {
  isSelected: boolean;
  isFocused: boolean;
  isMine: boolean;
  showProject: boolean;
  drag: RowDrag;
  onSelect(job: Job, isSelected: boolean, range: boolean): void;
  onExplain(job: Job): void;
}

/** A waiting job: place, name, reason and estimated start. */
export function WaitingRow(props: WaitingRowProps) {
  const { job, drag } = props;
  const start = formatStartShort(job.estimate);
  return (
    <div
      className={classes.row}
      data-mine={props.isMine || undefined}
      data-selected={props.isFocused || undefined}
      data-dragged={drag.isDragged || undefined}
      data-drop={drag.mark}
      {...buildDragHandlers(job, drag)}
    >
      <span className={classes.grip} aria-hidden="true" data-enabled={drag.enabled || undefined}>
        {drag.enabled && <IconGripVertical size={14} />}
      </span>
      <Checkbox
        className={classes.check}
        aria-label={`Select job ${job.id}`}
        checked={props.isSelected}
        onChange={() => undefined}
        onClick={(event) => props.onSelect(job, event.currentTarget.checked, event.shiftKey)}
      />
      <span className={classes.place} title="Place in the queue of the pool">
        {job.position === null ? "–" : formatCount(job.position)}
      </span>
      <div className={classes.what}>
        <JobName job={job} />
        <button
          type="button"
          className={classes.reason}
          title={`${job.waiting ?? ""}\nShow what decides its place`}
          onClick={() => props.onExplain(job)}
        >
          {job.waiting ?? "–"}
        </button>
      </div>
      <span className={classes.start} title={hintStart(job.estimate)}>
        {start === null ? (
          <span className="faint">no estimate yet</span>
        ) : (
          <>
            {start}
            <span className="faint">expected start</span>
          </>
        )}
      </span>
      <span className={classes.terms}>
        <span className="clip">
          {nameSchedule(job.schedule)}
          {job.priority !== 0 && `, priority ${formatCount(job.priority)}`}
        </span>
        <span className="faint clip">{describeNeeds(job)}</span>
      </span>
      <span className={classes.who}>
        <span className="clip" title={job.created_by}>
          {props.isMine ? "you" : job.created_by}
        </span>
        <span className="faint clip" title={job.project}>
          {props.showProject ? job.project : ""}
        </span>
      </span>
      <span className={classes.since} title={formatMoment(job.created_at)}>
        {formatAge(job.created_at)}
      </span>
      <WaitingMenu {...props} />
    </div>
  );
}

function describeNeeds(job: Job): string {
  const { gpus, cpu_threads: threads } = job.resources;
  const hours = job.limits.wall_seconds;
  const needs = gpus ? formatPlural(gpus, "GPU") : threads ? formatPlural(threads, "thread") : "";
  const limit = hours ? `at most ${Math.round(hours / 360) / 10} h` : "";
  return [needs, limit].filter(Boolean).join(", ");
}

function buildDragHandlers(job: Job, drag: RowDrag) {
  return {
    draggable: drag.enabled,
    onDragStart: (event: DragEvent) => {
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", job.id);
      drag.onStart(job);
    },
    onDragOver: (event: DragEvent) => {
      const { top, height } = event.currentTarget.getBoundingClientRect();
      const half = event.clientY < top + height / 2 ? "upper" : "lower";
      if (drag.onOver(job, half)) event.preventDefault();
    },
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      drag.onDrop(job);
    },
    onDragEnd: drag.onEnd,
  };
}
