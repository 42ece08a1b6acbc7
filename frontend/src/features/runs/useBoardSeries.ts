import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { listMeasures } from "@/api/definition";
import { runQuery, seriesNamesQuery } from "@/api/queries";
import type { Run } from "@/api/types";
import type { BoardView } from "./boardQuery";

/** Number of experiments whose names of series are read: others mostly have the same. */
const MOST_EXPERIMENTS = 12;
const LIVE_MS = 15_000;

export interface BoardSeries {
  names: string[];
  evaluations: BoardView["evaluations"];
  loading: boolean;
  error: ApiError | null;
}

/**
 * The names of the runs' series, and the distance of their evaluations: those of the run of each
 * experiment that has come furthest.
 */
export function useBoardSeries(runs: readonly Run[]): BoardSeries {
  const chosen = useMemo(() => chooseRuns(runs), [runs]);
  const live = chosen.some((run) => run.state === "running");
  const infos = useQueries({
    queries: chosen.map((run) => ({
      ...seriesNamesQuery(run.id),
      staleTime: 60_000,
      refetchInterval: live ? LIVE_MS : (false as const),
    })),
  });
  const details = useQueries({
    queries: chosen.map((run) => ({ ...runQuery(run.id), staleTime: Number.POSITIVE_INFINITY })),
  });
  const key = infos.flatMap((one) => one.data?.map(({ name }) => name) ?? []);
  const joined = [...new Set(key)].sort().join("\n");
  const names = useMemo(() => (joined === "" ? [] : joined.split("\n")), [joined]);
  const distances = details.flatMap((one) => (one.data ? [listMeasures(one.data.definition)] : []));
  // Evaluations that are further apart than the closest ones have buckets of their own in any case.
  const known = distances.flatMap((one) => one.evaluateEvery ?? []);
  const every = known.length > 0 ? Math.min(...known) : 0;
  const counter = distances[0]?.counter ?? "env_step";
  const evaluations = useMemo(() => (every > 0 ? { counter, every } : null), [counter, every]);
  return {
    names,
    evaluations,
    loading: [...infos, ...details].some((one) => one.isPending && one.failureCount === 0),
    error: (infos.find((one) => one.error !== null)?.error ?? null) as ApiError | null,
  };
}

/** The run of each experiment that has come furthest. */
function chooseRuns(runs: readonly Run[]): Run[] {
  const found = new Map<string, Run>();
  for (const run of runs) {
    const best = found.get(run.experiment_id);
    if (best === undefined || reach(run) > reach(best)) found.set(run.experiment_id, run);
  }
  return [...found.values()].slice(0, MOST_EXPERIMENTS);
}

function reach({ progress }: Run): number {
  return Math.max(progress.env_step, progress.update);
}
