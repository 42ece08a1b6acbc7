import { Button, Skeleton } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ApiError } from "@/api/client";
import { type Episode, episodesQuery } from "@/api/episodes";
import type { RunDetail } from "@/api/types";
import { formatClock, formatCount, formatMoment, formatValue } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { type Column, DataTable } from "@/ui/DataTable";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";

const PER_PAGE = 500;
const LIVE_MS = 10_000;

const COLUMNS: Column<Episode>[] = [
  number("episode", "Episode", (row) => row.episode, formatCount, 100),
  number(
    "return",
    "Return",
    (row) => row.episode_return,
    (x) => formatValue(x, 6),
    120,
  ),
  number("length", "Length", (row) => row.episode_length, formatCount, 96),
  number("env_step", "env step", (row) => row.env_step, formatCount, 110),
  number("env", "Environment", (row) => row.env_index, formatCount, 110, "narrow"),
  {
    id: "end",
    header: "End",
    width: 110,
    hide: "narrow",
    sort: (row) => Number(row.terminated),
    cell: (row) => (row.terminated ? "terminated" : "truncated"),
  },
  {
    id: "at",
    header: "When",
    align: "right",
    hide: "narrow",
    sort: (row) => row.wall,
    cell: (row) => (
      <span title={formatMoment(new Date(row.wall * 1000).toISOString())}>
        {formatClock(row.wall)}
      </span>
    ),
  },
];

/** Training episodes, newest first, a page at a time. */
export function EpisodesTab({ run }: { run: RunDetail }) {
  const total = run.progress.episode;
  const [ending, setEnding] = useState<number | null>(null);
  const last = ending ?? total;
  const first = Math.max(0, last - PER_PAGE + 1);
  const query = useQuery({
    ...episodesQuery(run.id, first, last),
    placeholderData: keepPreviousData,
    refetchInterval: run.state === "running" && ending === null ? LIVE_MS : false,
    enabled: total > 0,
  });
  const problem = findQueryError(query);
  if (total === 0) {
    return (
      <Panel flush>
        <EmptyState title="No episode yet">
          Each finished episode of the training has a row here.
        </EmptyState>
      </Panel>
    );
  }
  if (query.data === undefined) {
    return problem === null ? (
      <Skeleton height={240} radius={10} />
    ) : (
      <Failure error={problem as ApiError} retry={() => void query.refetch()} />
    );
  }
  const isOldest = first <= 1;
  return (
    <Panel
      flush
      title={`Episodes ${formatCount(Math.max(1, first))} to ${formatCount(last)} of ${formatCount(total)}`}
      aside={
        <>
          <Button
            variant="default"
            disabled={ending === null}
            onClick={() => setEnding(last + PER_PAGE >= total ? null : last + PER_PAGE)}
          >
            Newer
          </Button>
          <Button variant="default" disabled={isOldest} onClick={() => setEnding(first - 1)}>
            Older
          </Button>
        </>
      }
    >
      <DataTable
        label="Episodes"
        rows={query.data}
        columns={COLUMNS}
        rowId={(row) => `${row.episode}/${row.env_index}/${row.env_step}`}
      />
    </Panel>
  );
}

function number(
  id: string,
  header: string,
  value: (row: Episode) => number,
  format: (x: number) => string,
  width: number,
  hide?: "narrow",
): Column<Episode> {
  return {
    id,
    header,
    align: "right",
    width,
    ...(hide ? { hide } : {}),
    sort: value,
    cell: (row) => format(value(row)),
  };
}
