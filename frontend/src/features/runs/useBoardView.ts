import { useEffect, useRef, useState } from "react";
import { querySeries } from "@/api/queries";
import type { Run } from "@/api/types";
import { useThrottle } from "@/lib/throttle";
import { useLive } from "@/live/useLive";
import { type BoardView, buildGroupFilter, hasInterval } from "./boardQuery";
import type { BoardSearch } from "./boardSearch";
import { PanelStore } from "./panelStore";
import type { BoardSeries } from "./useBoardSeries";

/** Time between two refreshes of the curves of runs that train. */
const LIVE_MS = 5_000;
const TYPES = ["points", "evaluation"];
/** Runs whose events say that the curves went on; the others train at the same time. */
const MOST_FOLLOWED = 20;
const PANEL_WIDTH = 340;
const GAP = 10;
const FEWEST_BUCKETS = 200;
const MOST_BUCKETS = 1_500;
/** Buckets are rounded up to a multiple of this, so that a small resize asks for nothing. */
const BUCKET_STEP = 100;

interface BoardViewOptions {
  runs: readonly Run[];
  groupBy: readonly string[];
  filter: string;
  project: string | null;
  search: BoardSearch;
  series: BoardSeries;
  /** Width of the board in CSS pixels. */
  width: number;
  /** Whether a panel has this width. */
  isLarge: boolean;
}

/** The store of the panels' curves, which follows the view and the runs. */
export function useBoardView(options: BoardViewOptions): PanelStore {
  const { runs, groupBy, filter, project, search, series, width, isLarge } = options;
  const [store] = useState(() => new PanelStore(querySeries));
  useEffect(() => () => store.close(), [store]);
  const aggregate = search.aggregate ?? "mean";
  const band = search.band ?? "stderr";
  const view: BoardView = {
    runs: runs.map((run) => run.id),
    filter: buildGroupFilter(filter, project),
    groupBy,
    axis: search.x ?? "env_step",
    start: search.start,
    end: search.end,
    buckets: countBuckets(width, isLarge),
    aggregate,
    band: band === "interval" && !hasInterval(aggregate) ? "none" : band,
    carry: search.carry ?? false,
    faint: search.faint !== "hide",
    evaluations: series.evaluations,
  };
  const key = JSON.stringify(view);
  const latest = useRef(view);
  latest.current = view;
  const ready = width > 0 && runs.length > 0 && !series.loading;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the view
  useEffect(() => {
    if (ready) store.show(latest.current);
  }, [store, key, ready]);
  const refresh = useThrottle(() => store.refresh(), LIVE_MS);
  const take = () => {
    if (!document.hidden) refresh();
    series.refresh();
  };
  const running = runs.filter((run) => run.state === "running").map((run) => run.id);
  const followed = running.slice(0, MOST_FOLLOWED);
  useLive(
    followed.length > 0 ? `board:${followed.join()}` : null,
    null,
    { run: followed, type: TYPES },
    { onEvents: take, onResync: take },
  );
  return store;
}

/** One bucket per pixel of the widest panel. */
function countBuckets(width: number, isLarge: boolean): number {
  const columns = isLarge ? 1 : Math.max(1, Math.floor((width + GAP) / (PANEL_WIDTH + GAP)));
  const panel = ((width - GAP * (columns - 1)) / columns) * devicePixelRatio;
  const rounded = Math.ceil(panel / BUCKET_STEP) * BUCKET_STEP;
  return Math.min(MOST_BUCKETS, Math.max(FEWEST_BUCKETS, rounded));
}
