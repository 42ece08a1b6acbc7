import type { Owned } from "@/api/types";
import { formatPlural } from "@/lib/format";

/** Phrases for the numbers of a person's objects; kinds without objects are left out. */
export function listOwnedParts({ experiments, runs, jobs, live_jobs, workers }: Owned): string[] {
  const unfinished = live_jobs > 0 ? ` (${live_jobs} unfinished)` : "";
  return [
    experiments > 0 && formatPlural(experiments, "experiment"),
    runs > 0 && formatPlural(runs, "run"),
    jobs > 0 && formatPlural(jobs, "job") + unfinished,
    workers > 0 && formatPlural(workers, "worker"),
  ].filter((part) => part !== false);
}
