import { useEffect, useReducer, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { querySeries } from "@/api/queries";
import type { LiveEvent, SeriesQuery, SeriesResult } from "@/api/types";
import { computeRetryDelay, isTransient } from "@/lib/outage";
import { countVisibleBuckets } from "@/lib/visibleBuckets";
import type { View } from "./curve";
import { curvesOf, releaseCurves } from "./curveRegistry";
import type { RunCurves } from "./curves";
import type { Chain } from "./fenceChain";
import type { PointsOfBatch } from "./seriesRing";
import { useLive } from "./useLive";

/**
 * A live run with at most this many points and events is replayed point by point; the history of a
 * longer one stays in buckets.
 */
const EXACT_POINTS = 5_000;
const EXACT_EVENTS = 5_000;
const MOST_SERIES = 1_000;
/** The time without another change of the view after which its buckets are loaded. */
const SETTLE_MS = 220;
/**
 * Number of exact points at which the history is loaded as buckets again, which bounds the memory
 * of a tab that stays open.
 */
const REFRESH_AT = 16_000;

interface Loaded {
  generation: number;
  /** Cursor after which the stream delivers events. */
  after: number;
  /** Last event that the rest of the page includes: of older events only points are used. */
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
  /** Names of the series before the first event; `null` until they are loaded. */
  names: readonly string[] | null;
  chain: Chain | null | undefined;
  /** Whether points may still arrive; the curves of a finished run are not replayed. */
  live: boolean;
  view: View;
  /** Called for each event that holds no points. */
  onEvent(event: LiveEvent): void;
  /** Called when a point has a higher fence than every known attempt. */
  onNewFence(): void;
  onResync(): void;
  /** Called when a history was loaded: other data of the page may be older than its cursor. */
  onLoaded(): void;
}

/** Loads a run's history, then appends the points after its cursor, without gap or overlap. */
export function useRunCurves(options: Options): RunCurvesState {
  const { id, names, chain, view } = options;
  const curves = curvesOf(id);
  const mute = useRef(() => {});
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
      mute.current();
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
      if (isTransient(problem))
        again = setTimeout(reload, computeRetryDelay(failures.current, problem));
      failures.current += 1;
    });
    return () => {
      clearTimeout(again);
      abort.abort();
    };
  }, [id, ready, generation, curves]);

  // Buckets are computed for one axis and range, so another view loads others. Exact points serve
  // every view.
  const shown = JSON.stringify([view.axis, view.start, view.end, view.superseded]);
  const before = useRef(shown);
  useEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    if (mode.current.exact) return;
    const settled = setTimeout(reload, SETTLE_MS);
    return () => clearTimeout(settled);
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
    const points = event.data as unknown as PointsOfBatch;
    for (const { name, ...columns } of points.series)
      curves.append(name, { fence: points.fence, seq: points.seq, ...columns });
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
  mute.current = useLive(
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
    buckets: countVisibleBuckets(),
    start: view.start ?? null,
    end: view.end ?? null,
    columns: ["min", "max", "mean", "last"],
  };
  const [history, withSuperseded] = await Promise.all([
    queryRange(query, signal),
    view.superseded ? queryRange({ ...query, include_superseded: true }, signal) : null,
  ]);
  const points = history.series.reduce((sum, one) => sum + one.points, 0);
  return { history, withSuperseded, points, cursor: history.cursor };
}

/** The curves in a range; a range that holds no point is answered with no curves. */
async function queryRange(query: SeriesQuery, signal: AbortSignal): Promise<SeriesResult> {
  try {
    return await querySeries(query, signal);
  } catch (reason) {
    if (!(reason instanceof ApiError && reason.code === "range_without_data")) throw reason;
    return querySeries({ select: [], buckets: 1 }, signal);
  }
}
