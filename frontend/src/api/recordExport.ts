/** Addresses of the files with all points, episodes or evaluations of runs. */
import { buildAddress } from "./client";
import { pathIn } from "./queries";

export const RECORD_KINDS = ["points", "episodes", "evaluations"] as const;
export const RECORD_FORMATS = ["csv", "parquet", "arrow"] as const;

export type RecordKind = (typeof RECORD_KINDS)[number];
export type RecordFormat = (typeof RECORD_FORMATS)[number];
export type RecordOwner = { run: string } | { experiment: string };

/** The URL of the file; its name comes with it. */
export function recordExport(
  project: string | null,
  owner: RecordOwner,
  kind: RecordKind,
  format: RecordFormat,
): string {
  return buildAddress(pathIn(project, "/records:export"), { ...owner, kind, format });
}
