import type { Owned } from "@/api/types";
import { plural } from "@/lib/format";

/** Phrases for the numbers of a person's objects; kinds without objects are left out. */
export function ownedParts({ experiments, runs, jobs, live_jobs, workers }: Owned): string[] {
  const unfinished = live_jobs > 0 ? ` (${live_jobs} unfinished)` : "";
  return [
    experiments > 0 && plural(experiments, "experiment"),
    runs > 0 && plural(runs, "run"),
    jobs > 0 && plural(jobs, "job") + unfinished,
    workers > 0 && plural(workers, "worker"),
  ].filter((part) => part !== false);
}
