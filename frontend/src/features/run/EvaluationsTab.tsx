import { Button, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { listMeasures } from "@/api/definition";
import { evaluationsQuery } from "@/api/queries";
import type { Evaluation, EvaluationSource, RunDetail } from "@/api/types";
import { saveText } from "@/lib/csv";
import {
  formatAge,
  formatCount,
  formatMoment,
  formatPlural,
  formatScore,
  formatSpread,
  formatValue,
  shortenId,
  toNumber,
} from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { IconDownload } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import { EvaluationStrip } from "./EvaluationStrip";
import classes from "./EvaluationsTab.module.css";
import { computeDomain } from "./evaluationDomain";
import { buildEvaluationTable } from "./evaluationTable";

import { metricColumns } from "./metricColumns";

interface EvaluationsTabProps {
  run: RunDetail;
  color: string;
  onOpen(id: string): void;
}

/** Every evaluation of the run, newest first. */
export function EvaluationsTab({ run, color, onOpen }: EvaluationsTabProps) {
  const query = useQuery(evaluationsQuery(run.id));
  const rows = useMemo(() => [...(query.data ?? [])].reverse(), [query.data]);
  const best = run.best_evaluation?.id;
  const columns = useMemo(() => {
    const measures = listMeasures(run.definition);
    const results =
      measures.metric === null
        ? returnColumns(color, best, rows)
        : metricColumns(rows, measures, best);
    return [...results, ...ORIGIN];
  }, [color, best, rows, run.definition]);
  const problem = findQueryError(query);
  if (query.isPending && problem === null) return <Skeleton height={240} radius={10} />;
  if (query.data === undefined)
    return <Failure error={problem as ApiError} retry={() => void query.refetch()} />;
  return (
    <Panel
      flush
      title={rows.length > 0 ? formatPlural(rows.length, "evaluation") : undefined}
      aside={
        rows.length > 0 && (
          <Button
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => saveText(`${run.id}-evaluations.csv`, buildEvaluationTable(query.data))}
          >
            CSV
          </Button>
        )
      }
    >
      {rows.length === 0 ? (
        <EmptyState title="No evaluation yet" command={`palestra evaluate ${run.id}`}>
          The training is evaluated at the interval of its definition. Further evaluations can be
          queued on any snapshot.
        </EmptyState>
      ) : (
        <DataTable
          label="Evaluations"
          rows={rows}
          columns={columns}
          rowId={(row) => row.id}
          onOpen={(row) => onOpen(row.id)}
          rowClass={(row) => (row.superseded ? classes.old : undefined)}
        />
      )}
    </Panel>
  );
}

function hasSuccessRate(row: Evaluation): boolean {
  return typeof row.success_rate === "number";
}

/** Share of successful episodes; shown where the environment reports success. */
const SUCCESS: Column<Evaluation> = {
  id: "success_rate",
  header: "Success",
  align: "right",
  width: 84,
  sort: (row) => row.success_rate ?? -1,
  cell: (row) =>
    typeof row.success_rate === "number" ? `${formatValue(100 * row.success_rate, 3)} %` : "",
};

/** Episodes that were cut; shown where there are any. */
const CUT: Column<Evaluation> = {
  id: "cut_episodes",
  header: "Cut",
  align: "right",
  width: 60,
  sort: (row) => row.cut_episodes ?? -1,
  cell: (row) => (
    <span title="Episodes without a time limit, cut after 10,000 env steps">
      {row.cut_episodes ?? ""}
    </span>
  ),
};

function returnColumns(
  color: string,
  best: string | undefined,
  rows: readonly Evaluation[],
): Column<Evaluation>[] {
  const domain = computeDomain(rows);
  const number = (
    id: keyof Evaluation & string,
    header: string,
    hide?: "narrow" | "medium",
  ): Column<Evaluation> => ({
    id,
    header,
    align: "right",
    width: 84,
    ...(hide ? { hide } : {}),
    sort: (row) => toNumber(row[id] as number),
    cell: (row) => formatScore(row[id] as number | string, row.stdev),
  });
  return [
    {
      id: "env_step",
      header: "env step",
      width: 100,
      align: "right",
      sort: (row) => row.env_step,
      cell: (row) => formatCount(row.env_step),
    },
    {
      id: "mean",
      header: "Mean return",
      width: 126,
      align: "right",
      sort: (row) => toNumber(row.mean),
      cell: (row) => (
        <>
          {row.id === best && <span className={classes.best}>best</span>}
          <b>{formatScore(row.mean, row.stdev)}</b>
        </>
      ),
    },
    {
      id: "stdev",
      header: "± sd",
      align: "right",
      width: 70,
      sort: (row) => (row.episodes > 1 ? toNumber(row.stdev) : -1),
      cell: (row) => (row.episodes > 1 ? formatSpread(row.stdev) : "–"),
    },
    number("median", "Median", "narrow"),
    number("min", "Min", "narrow"),
    number("max", "Max", "narrow"),
    {
      id: "length",
      header: "Length",
      width: 84,
      align: "right",
      hide: "medium",
      sort: (row) => toNumber(row.length_mean),
      cell: (row) => formatValue(row.length_mean),
    },
    ...(rows.some(hasSuccessRate) ? [SUCCESS] : []),
    {
      id: "episodes",
      header: "n",
      width: 52,
      align: "right",
      sort: (row) => row.episodes,
      cell: (row) => row.episodes,
    },
    ...(rows.some((row) => row.cut_episodes) ? [CUT] : []),
    {
      id: "returns",
      header: "Episodes",
      hide: "medium",
      cell: (row) => <EvaluationStrip row={row} color={color} domain={domain} />,
    },
  ];
}

/** The columns of an evaluation's source and time. */
const ORIGIN: Column<Evaluation>[] = [
  {
    id: "of",
    header: "Source",
    width: 230,
    hide: "medium",
    cell: (row) => <EvaluationOrigin row={row} />,
  },
  {
    id: "at",
    header: "When",
    width: 92,
    align: "right",
    hide: "narrow",
    sort: (row) => row.created_at,
    cell: (row) => <span title={formatMoment(row.created_at)}>{formatAge(row.created_at)}</span>,
  },
];

const MARKS: Partial<Record<EvaluationSource, { text: string; hint: string }>> = {
  stochastic: { text: "drawn actions", hint: "With actions that were drawn from the policy" },
  greedy: { text: "greedy actions", hint: "With the most probable actions" },
  train_data: { text: "training episodes", hint: "On the first episodes of the training" },
};

/**
 * The evaluated state (that of the training, or a snapshot), and what else distinguishes the
 * evaluation.
 */
function EvaluationOrigin({ row }: { row: Evaluation }) {
  if (row.source === "test") return "test";
  const mark = MARKS[row.source];
  return (
    <>
      {row.snapshot_id ? (
        <code title={row.snapshot_id}>{shortenId(row.snapshot_id)}</code>
      ) : row.final ? (
        "end of training"
      ) : (
        "training"
      )}
      {mark && (
        <span className="faint" title={mark.hint}>
          {" "}
          {mark.text}
        </span>
      )}
    </>
  );
}
