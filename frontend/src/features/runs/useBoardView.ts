import { useEffect, useRef, useState } from "react";
import { querySeries } from "@/api/queries";
import type { Run } from "@/api/types";
import { type BoardView, buildGroupFilter, hasInterval } from "./boardQuery";
import type { BoardSearch } from "./boardSearch";
import { PanelStore } from "./panelStore";
import type { BoardSeries } from "./useBoardSeries";

const LIVE_MS = 5_000;
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
}

/** The store of the panels' curves, which follows the view and the runs. */
export function useBoardView(options: BoardViewOptions): PanelStore {
  const { runs, groupBy, filter, project, search, series, width } = options;
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
    buckets: countBuckets(width),
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
  const live = runs.some((run) => run.state === "running");
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => {
      if (!document.hidden) store.refresh();
    }, LIVE_MS);
    return () => clearInterval(timer);
  }, [store, live]);
  return store;
}

/** One bucket per pixel of a panel. */
function countBuckets(width: number): number {
  const columns = Math.max(1, Math.floor((width + GAP) / (PANEL_WIDTH + GAP)));
  const panel = ((width - GAP * (columns - 1)) / columns) * devicePixelRatio;
  const rounded = Math.ceil(panel / BUCKET_STEP) * BUCKET_STEP;
  return Math.min(MOST_BUCKETS, Math.max(FEWEST_BUCKETS, rounded));
}
