import { useEffect, useReducer, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { querySeries } from "@/api/queries";
import type { LiveEvent, SeriesQuery } from "@/api/types";
import { delayOf, isPassing } from "@/lib/outage";
import type { View } from "./curve";
import { curvesOf, releaseCurves } from "./curveRegistry";
import type { RunCurves } from "./curves";
import type { Chain } from "./fenceChain";
import type { PointColumns } from "./seriesRing";
import { useLive, useStream } from "./useLive";

/**
 * Up to so many points and events a live run's curves are replayed exactly; beyond, history stays
 * in buckets.
 */
const EXACT_POINTS = 5_000;
const EXACT_EVENTS = 5_000;
const BUCKETS = 800;
const MOST_SERIES = 1_000;
/**
 * Exact points after which a series is summed up again: memory stays flat however long a tab is
 * open.
 */
const REFRESH_AT = 16_000;

interface Loaded {
  generation: number;
  /** Event from which to tail. */
  after: number;
  /** Event that everything else on the page holds: older ones bring points only. */
  floor: number;
}

export interface RunCurvesState {
  curves: RunCurves;
  error: ApiError | null;
  loading: boolean;
  retry(): void;
}

interface Options {
  id: string;
  /** Names known before the first event; `null` while unknown. */
  names: readonly string[] | null;
  chain: Chain | null | undefined;
  /** Whether more may come: only then is it worth to replay every point. */
  live: boolean;
  view: View;
  /** Everything of the run but its points. */
  onEvent(event: LiveEvent): void;
  /** A later attempt than all known ones wrote a point. */
  onNewFence(): void;
  onResync(): void;
  /** A history was loaded: what else the page shows may be older than its cursor. */
  onLoaded(): void;
}

/** Loads a run's history, then follows it: no gap, no overlap. */
export function useRunCurves(options: Options): RunCurvesState {
  const { id, names, chain, view } = options;
  const curves = curvesOf(id);
  const stream = useStream();
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [generation, reload] = useReducer((n: number) => n + 1, 0);
  const refreshing = useRef(false);
  const failures = useRef(0);
  const mode = useRef({ exactAllowed: true, exact: false, fence: 0 });
  const latest = useRef({ names, view, live: options.live, onLoaded: options.onLoaded });
  latest.current = { names, view, live: options.live, onLoaded: options.onLoaded };
  const ready = names !== null;

  useEffect(() => () => releaseCurves(id), [id]);

  useEffect(() => {
    if (!ready) return;
    const abort = new AbortController();
    const load = async () => {
      const found = await readHistory(
        id,
        latest.current.names ?? [],
        latest.current.view,
        abort.signal,
      );
      const small = found.points <= EXACT_POINTS && found.cursor <= EXACT_EVENTS;
      const exact = mode.current.exactAllowed && latest.current.live && small;
      stream.detach();
      mode.current = { ...mode.current, exact, fence: 0 };
      curves.reset(latest.current.names ?? [], found.history, found.withSuperseded);
      if (latest.current.view.end === undefined) curves.latest.history(found.history.series);
      if (exact) curves.awaitReplay(found.points);
      refreshing.current = false;
      failures.current = 0;
      setLoaded({ generation, after: exact ? 0 : found.cursor, floor: found.cursor });
      setError(null);
      latest.current.onLoaded();
    };
    let again: ReturnType<typeof setTimeout> | undefined;
    load().catch((reason: unknown) => {
      if (abort.signal.aborted) return;
      const problem =
        reason instanceof ApiError ? reason : new ApiError({ status: 0, detail: String(reason) });
      setError(problem);
      if (isPassing(problem)) again = setTimeout(reload, delayOf(failures.current));
      failures.current += 1;
    });
    return () => {
      clearTimeout(again);
      abort.abort();
    };
  }, [id, ready, generation, curves, stream]);

  // Buckets are made for one axis and range: another view needs others. Exact points serve every
  // view.
  const shown = JSON.stringify([view.axis, view.start, view.end, view.superseded]);
  const before = useRef(shown);
  useEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    if (!mode.current.exact) reload();
  }, [shown]);

  useEffect(() => {
    if (chain) curves.setChain(chain);
    if (chain === null && mode.current.exact) {
      mode.current.exactAllowed = false;
      reload();
    }
  }, [chain, curves]);

  const take = (event: LiveEvent) => {
    if (event.type !== "points") {
      if (event.id > (loaded?.floor ?? 0)) options.onEvent(event);
      return;
    }
    const { series, ...points } = event.data as unknown as PointColumns & { series: string };
    curves.append(series, points);
    if (points.fence > mode.current.fence) {
      const first = mode.current.fence === 0;
      mode.current.fence = points.fence;
      if (chain !== undefined && points.fence > (chain?.newest ?? 0)) options.onNewFence();
      if (!first && !mode.current.exact) reload();
    }
    if (curves.longest >= REFRESH_AT) {
      mode.current.exactAllowed = false;
      if (!refreshing.current) reload();
      refreshing.current = true;
    }
  };

  const key = loaded === null ? null : `run:${id}:${loaded.generation}`;
  useLive(
    key,
    loaded?.after ?? null,
    { run: id },
    {
      onEvents: (events) => events.forEach(take),
      onResync: () => {
        mode.current.exactAllowed = false;
        options.onResync();
        reload();
      },
    },
  );
  return { curves, error, loading: loaded === null, retry: reload };
}

async function readHistory(id: string, names: readonly string[], view: View, signal: AbortSignal) {
  const select = names.slice(0, MOST_SERIES).map((series) => ({ run_id: id, series }));
  const query: SeriesQuery = {
    select,
    groups: [],
    x: view.axis,
    buckets: BUCKETS,
    start: view.start ?? null,
    end: view.end ?? null,
    include_superseded: false,
  };
  const [history, withSuperseded] = await Promise.all([
    querySeries(query, signal),
    view.superseded ? querySeries({ ...query, include_superseded: true }, signal) : null,
  ]);
  const points = history.series.reduce((sum, one) => sum + one.points, 0);
  return { history, withSuperseded, points, cursor: history.cursor };
}
