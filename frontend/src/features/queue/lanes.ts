/** The waiting jobs as rows below the headings of their classes. Pure. */
import type { Job, Lane, PriorityClass } from "@/api/types";
import { CLASSES } from "./search";

export interface LaneHeading {
  kind: "lane";
  key: string;
  priorityClass: PriorityClass;
  /** Whether the jobs below have no place, while others before them have one. */
  hasNoPlace: boolean;
  /** Number of waiting jobs of the class; `null` where only some of them are counted. */
  count: number | null;
}

export type QueueRow = LaneHeading | { kind: "job"; key: string; job: Job; number: number };

/**
 * Puts the jobs below a heading for each class, and below one for the jobs of a class without a
 * place. An assigned job, which starts before all others, is listed first of its class.
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
  const havePlaces = jobs.some((job) => job.position !== null);
  const found = new Map<string, Job[]>();
  const keyOf = (priorityClass: string, hasNoPlace: boolean) => `${priorityClass} ${hasNoPlace}`;
  for (const job of jobs) {
    const key = keyOf(job.priority_class, havePlaces && job.position === null);
    const known = found.get(key);
    if (known) known.push(job);
    else found.set(key, [job]);
  }
  const rows: QueueRow[] = [];
  const counted = new Set<PriorityClass>();
  let number = 0;
  for (const hasNoPlace of [false, true])
    for (const priorityClass of CLASSES) {
      const some = found.get(keyOf(priorityClass, hasNoPlace));
      if (some === undefined) continue;
      const lane = lanes.find((one) => one.priority_class === priorityClass);
      const isCounted = count !== null && !counted.has(priorityClass);
      counted.add(priorityClass);
      rows.push({
        kind: "lane",
        key: `lane ${keyOf(priorityClass, hasNoPlace)}`,
        priorityClass,
        hasNoPlace,
        count: isCounted ? (lane?.[count] ?? null) : null,
      });
      for (const job of some) rows.push({ kind: "job", key: job.id, job, number: number++ });
    }
  return rows;
}

/** The jobs in the order of their rows. */
export function listJobs(rows: readonly QueueRow[]): Job[] {
  return rows.flatMap((row) => (row.kind === "job" ? [row.job] : []));
}
