/** What the server says of a submission before it is made. */
import type { SubmissionWarning } from "@/api/types";

interface Estimate {
  /** Time of the start that half of the simulated cases have reached; `null` if it is unknown. */
  median: string | null;
  low?: string | null;
  high?: string | null;
}

export interface SubmissionPreview {
  experiment_id: string;
  exists: boolean;
  seeds: readonly number[];
  seeds_there: readonly number[];
  jobs: number;
  pool: string;
  sentence: string;
  ahead: number;
  first: Estimate | null;
  warnings: readonly SubmissionWarning[];
}
