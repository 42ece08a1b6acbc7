/** The waiting jobs as rows below the headings of their classes. Pure. */
import type { Job, Lane, PriorityClass } from "@/api/types";

export interface LaneHeading {
  kind: "lane";
  key: string;
  priorityClass: PriorityClass;
  /** Whether the jobs below have no place, while others before them have one. */
  hasNoPlace: boolean;
  /** Number of waiting jobs of the class; `null` where only some of them are counted. */
  count: number | null;
}

export type QueueRow = LaneHeading | { kind: "job"; key: string; job: Job };

/**
 * Puts a heading before each class, and before the jobs of a class that have no place.
 *
 * @param jobs In the order in which they will start.
 * @param lanes Numbers of all jobs of the classes.
 * @param count Which of the numbers fits the filters; `null` if none does.
 */
export function buildRows(
  jobs: readonly Job[],
  lanes: readonly Lane[],
  count: "waiting" | "mine" | null,
): QueueRow[] {
  const rows: QueueRow[] = [];
  const counted = new Set<PriorityClass>();
  let last: LaneHeading | undefined;
  let hasPlaces = false;
  for (const job of jobs) {
    hasPlaces ||= job.position !== null;
    const hasNoPlace = hasPlaces && job.position === null;
    if (last?.priorityClass !== job.priority_class || last.hasNoPlace !== hasNoPlace) {
      const lane = lanes.find((one) => one.priority_class === job.priority_class);
      const isFirst = !counted.has(job.priority_class);
      counted.add(job.priority_class);
      last = {
        kind: "lane",
        key: `lane ${rows.length}`,
        priorityClass: job.priority_class,
        hasNoPlace,
        count: isFirst && count !== null ? (lane?.[count] ?? null) : null,
      };
      rows.push(last);
    }
    rows.push({ kind: "job", key: job.id, job });
  }
  return rows;
}
