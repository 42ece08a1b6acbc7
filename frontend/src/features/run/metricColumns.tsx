import type { Measures } from "@/api/definition";
import type { Evaluation } from "@/api/types";
import { formatCount, formatValue, toNumber } from "@/lib/format";
import type { Column } from "@/ui/DataTable";
import classes from "./EvaluationsTab.module.css";
import { listMetrics, pointOf } from "./evaluationCurves";

/** Evaluations of a supervised model: one column per metric, the score first. */
export function metricColumns(
  rows: readonly Evaluation[],
  measures: Measures,
  best: string | undefined,
): Column<Evaluation>[] {
  const rest = listMetrics(rows).filter((name) => name !== measures.metric);
  const metric = (name: string): Column<Evaluation> => ({
    id: `metric:${name}`,
    header: name,
    align: "right",
    width: 110,
    sort: (row) => toNumber(pointOf(row, name)),
    cell: (row) =>
      name === measures.metric ? (
        <>
          {row.id === best && <span className={classes.best}>best</span>}
          <b>{formatValue(pointOf(row, name))}</b>
        </>
      ) : (
        formatValue(pointOf(row, name))
      ),
  });
  return [
    {
      id: "update",
      header: "update",
      width: 100,
      align: "right",
      sort: (row) => row.update,
      cell: (row) => formatCount(row.update),
    },
    ...[measures.score, ...rest].map(metric),
    {
      id: "batches",
      header: "Batches",
      width: 84,
      align: "right",
      hide: "medium",
      sort: (row) => toNumber(row.length_mean),
      cell: (row) => formatValue(row.length_mean),
    },
  ];
}
