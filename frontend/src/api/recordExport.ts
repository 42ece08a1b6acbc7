/** Addresses of the files with all points, episodes, evaluations or epochs of runs. */
import type { RecordFormat, RecordKind } from "@/lib/records";
import { buildAddress } from "./client";

export type RecordOwner = { run: string } | { experiment: string };

/**
 * Returns the function that builds the URL of each file; the file's name comes with it. Two projects
 * may have an experiment with the same ID, so that of an experiment names its project.
 */
export function recordExport(
  project: string | null,
  owner: RecordOwner,
): (kind: RecordKind, format: RecordFormat) => string {
  return (kind, format) => buildAddress("/records:export", { ...owner, project, kind, format });
}
