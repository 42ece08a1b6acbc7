import type { Evaluation } from "@/api/types";
import { buildCsv } from "@/lib/csv";
import { listMetrics } from "./evaluationCurves";

const PLAIN = [
  "env_step",
  "update",
  "episode",
  "wall",
  "source",
  "snapshot_id",
  "superseded",
  "episodes",
  "mean",
] as const;
const SPREAD = [
  "median",
  "min",
  "max",
  "length_mean",
  "success_rate",
  "cut_episodes",
  "seed",
  "created_at",
] as const;

/**
 * Evaluations as CSV, every one with all its digits; the standard deviation of a single episode is
 * left empty.
 */
export function buildEvaluationTable(rows: readonly Evaluation[]): string {
  const metrics = listMetrics(rows);
  const header = [...PLAIN, "stdev", ...SPREAD, ...metrics, "returns"];
  return buildCsv(
    header,
    rows.map((row) => [
      ...PLAIN.map((name) => row[name]),
      row.episodes > 1 ? row.stdev : null,
      ...SPREAD.map((name) => row[name]),
      ...metrics.map((name) => row.metrics[name]),
      row.returns.join(" "),
    ]),
  );
}
