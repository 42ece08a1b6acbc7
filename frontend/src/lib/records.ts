/** What runs record and in which forms it is downloaded. */

export const RECORD_KINDS = ["points", "episodes", "evaluations", "epochs"] as const;
export const RECORD_FORMATS = ["csv", "parquet", "arrow"] as const;

export type RecordKind = (typeof RECORD_KINDS)[number];
export type RecordFormat = (typeof RECORD_FORMATS)[number];
