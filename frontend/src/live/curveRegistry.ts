/** The curves of the runs that pages show, which browser tests can read. */
import { RunCurves } from "./curves";

const runs = new Map<string, RunCurves>();

/** The curves of a run; the same object for every caller until it is released. */
export function curvesOf(runId: string): RunCurves {
  const found = runs.get(runId) ?? new RunCurves(runId);
  runs.set(runId, found);
  return found;
}

export function releaseCurves(runId: string): void {
  runs.delete(runId);
}

export interface ExposedSeries {
  env_step: number[];
  update: number[];
  episode: number[];
  wall: number[];
  value: number[];
  fence: number[];
  seq: number[];
  superseded: boolean[];
  /** Points before the first exact one, summarised in buckets. */
  history_points: number;
  dropped: number;
}

function expose(runId: string, series: string): ExposedSeries | null {
  const curves = runs.get(runId);
  const ring = curves?.ring(series);
  if (curves === undefined || ring === undefined) return null;
  const column = (name: Parameters<typeof ring.column>[0]) => Array.from(ring.column(name));
  return {
    env_step: column("env_step"),
    update: column("update"),
    episode: column("episode"),
    wall: column("wall"),
    value: column("value"),
    fence: column("fence"),
    seq: column("seq"),
    superseded: Array.from({ length: ring.length }, (_, i) => curves.isSuperseded(ring, i)),
    history_points: curves.historyPoints(series),
    dropped: ring.dropped,
  };
}

declare global {
  interface Window {
    /** The points of the charts, read-only, for browser tests. */
    readonly __palestra?: {
      series(runId: string, name: string): ExposedSeries | null;
      names(runId: string): readonly string[];
    };
  }
}

/** Defines `window.__palestra`. */
export function installProbe(): void {
  const probe = Object.freeze({
    series: expose,
    names: (runId: string) => runs.get(runId)?.names() ?? [],
  });
  Object.defineProperty(window, "__palestra", { value: probe, configurable: true });
}
