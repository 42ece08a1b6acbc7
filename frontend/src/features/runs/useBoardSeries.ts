import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ApiError } from "@/api/client";
import { listMeasures } from "@/api/definition";
import { runQuery } from "@/api/queries";
import { runKeysQuery } from "@/api/runQueries";
import type { Run } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { type BoardView, findEvaluationDistance } from "./boardQuery";

/** Number of experiments whose definitions are read: others mostly evaluate as often. */
const MOST_EXPERIMENTS = 12;
const REFRESH_MS = 15_000;

export interface BoardSeries {
  names: string[];
  /** Number of the newest runs whose series these are; `null` where they are those of all runs. */
  searched: number | null;
  evaluations: BoardView["evaluations"];
  loading: boolean;
  error: ApiError | null;
  /** Reads the names again, at most every 15 s. */
  refresh(): void;
}

/** The names of all series of the runs that a filter finds, and the distance of evaluations. */
export function useBoardSeries(
  runs: readonly Run[],
  filter: string,
  project: string | null,
): BoardSeries {
  const client = useQueryClient();
  const wanted = runKeysQuery(project, filter.trim());
  const found = useQuery({ ...wanted, enabled: runs.length > 0 });
  const { queryKey } = wanted;
  const refresh = useThrottle(
    () => void client.invalidateQueries({ queryKey, exact: true }),
    REFRESH_MS,
  );
  const chosen = useMemo(() => chooseRuns(runs), [runs]);
  const details = useQueries({
    queries: chosen.map((run) => ({ ...runQuery(run.id), staleTime: Number.POSITIVE_INFINITY })),
  });
  const joined = (found.data?.series ?? []).join("\n");
  const names = useMemo(() => (joined === "" ? [] : joined.split("\n")), [joined]);
  const measures = details.flatMap((one) => (one.data ? [listMeasures(one.data.definition)] : []));
  const distance = findEvaluationDistance(
    measures,
    runs.map((run) => run.progress),
  );
  const { counter = "env_step", every = 0 } = distance ?? {};
  const evaluations = useMemo(() => (every > 0 ? { counter, every } : null), [counter, every]);
  return {
    names,
    searched: found.data?.searched_runs ?? null,
    evaluations,
    loading: [found, ...details].some((one) => one.isLoading && one.failureCount === 0),
    error: found.error as ApiError | null,
    refresh,
  };
}

/** The first run of each experiment. */
function chooseRuns(runs: readonly Run[]): Run[] {
  const found = new Map(runs.toReversed().map((run) => [run.experiment_id, run]));
  return [...found.values()].slice(0, MOST_EXPERIMENTS);
}
