import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { listMeasures } from "@/api/definition";
import { keys, seriesNamesQuery, snapshotsQuery } from "@/api/queries";
import type { Evaluation, LiveEvent, LogPage, RunDetail, RunState } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { buildFenceChain } from "@/live/fenceChain";
import { LogTail } from "@/live/logTail";
import { useLive } from "@/live/useLive";
import { type RunCurvesState, useRunCurves } from "@/live/useRunCurves";
import type { RunSearch } from "./search";
import { isOfEvaluations } from "./seriesGroups";

const LIVE: ReadonlySet<RunState> = new Set<RunState>(["queued", "running", "paused"]);

export interface LiveRun {
  curves: RunCurvesState;
  log: LogTail;
}

/** The live data of a run page: one stream updates curves, log, evaluations and the run. */
export function useLiveRun(run: RunDetail, search: RunSearch, origin: number | undefined): LiveRun {
  const { id } = run;
  const client = useQueryClient();
  const series = useQuery({ ...seriesNamesQuery(id), staleTime: Number.POSITIVE_INFINITY });
  const snapshots = useQuery(snapshotsQuery(id));
  const [log] = useState(() => new LogTail(id));
  useEffect(() => log.open(), [log]);
  const detail = useThrottle(
    () => void client.invalidateQueries({ queryKey: keys.run(id), exact: true }),
    1000,
  );
  const saved = useThrottle(
    () => void client.invalidateQueries({ queryKey: keys.snapshots(id) }),
    1000,
  );
  const stored = useThrottle(() => {
    for (const queryKey of [keys.files(id), keys.videos(id)])
      void client.invalidateQueries({ queryKey });
  }, 1000);
  const names = useMemo(
    () =>
      series.data
        ? series.data.map((one) => one.name).filter((name) => !isOfEvaluations(name))
        : null,
    [series.data],
  );
  const chain = useMemo(
    () => (snapshots.data ? buildFenceChain(run, snapshots.data) : undefined),
    [run, snapshots.data],
  );
  const { x, start, end, superseded } = search;
  const { counter } = listMeasures(run.definition);
  const view = useMemo(
    () => ({ axis: x ?? counter, superseded: superseded ?? false, start, end, origin }) as const,
    [x, counter, start, end, superseded, origin],
  );
  const onEvent = (event: LiveEvent) => {
    if (event.type === "run") {
      client.setQueryData<RunDetail>(keys.run(id), (old) =>
        old ? { ...old, ...(event.data as Partial<RunDetail>) } : old,
      );
    } else if (event.type === "evaluation") {
      const made = event.data as unknown as Evaluation;
      client.setQueryData<Evaluation[]>(keys.evaluations(id), (old) =>
        old ? withEvaluation(old, made) : old,
      );
    } else if (event.type === "log") log.append(event.data as unknown as LogPage);
    else if (event.type === "snapshot") saved();
    else if (event.type === "artifact") stored();
    else if (event.type === "job" || event.type === "attempt") {
      detail();
      // What was stored before the stream followed the run is in the list by now.
      stored();
    }
  };
  const onNewFence = () => {
    detail();
    saved();
    void client.invalidateQueries({ queryKey: keys.evaluations(id) });
  };
  const refresh = () => {
    for (const part of [keys.run, keys.evaluations, keys.snapshots, keys.files, keys.videos]) {
      void client.invalidateQueries({ queryKey: part(id), exact: true });
    }
    log.reload();
  };
  const curves = useRunCurves({
    id,
    names,
    chain,
    view,
    live: LIVE.has(run.state),
    onEvent,
    onNewFence,
    onResync: refresh,
    onLoaded: refresh,
  });
  // Exports and evaluations of a run that has ended still store files.
  useLive(
    LIVE.has(run.state) ? null : `files of ${id}`,
    null,
    { run: id, type: ["artifact", "job", "attempt"] },
    { onEvents: (events) => events.forEach(onEvent), onResync: refresh },
  );
  // A move is an event of the experiment; the run, read again, is in the other project then.
  useLive(
    `moves of ${run.experiment_id}`,
    null,
    { experiment: run.experiment_id, type: ["moved"] },
    { onEvents: refresh, onResync: () => undefined },
  );
  const { latest } = curves.curves;
  useEffect(() => latest.list(series.data ?? []), [latest, series.data]);
  return { curves, log };
}

function withEvaluation(old: Evaluation[], made: Evaluation): Evaluation[] {
  if (old.some((one) => one.id === made.id)) return old;
  return [...old, made].sort((a, b) => a.env_step - b.env_step);
}
