/**
 * The curves of one run: history on a grid of buckets up to a cursor, exact points from there on.
 * Charts read it once per animation frame; React is told only when a series appears.
 */
import type { SeriesResult } from "@/api/types";
import { type Chain, isSuperseded, NO_CHAIN } from "./fenceChain";
import { LatestValues } from "./latest";
import { type Axis, type PointColumns, SeriesRing } from "./seriesRing";

export interface Curve {
  x: number[];
  y: (number | null)[];
  /** Spread within a bucket; equal to `y` where the point is exact. */
  low: (number | null)[];
  high: (number | null)[];
  /** What later attempts trained over; empty unless asked for. */
  ghost: (number | null)[];
  /** Points behind the curve, buckets counted by what they sum up. */
  points: number;
}

interface History {
  x: number[];
  mean: number[];
  min: number[];
  max: number[];
  points: number;
}

export interface View {
  axis: Axis;
  superseded: boolean;
  start?: number | undefined;
  end?: number | undefined;
}

/** At most ten repaints a second, each in an animation frame. */
const PAINT_INTERVAL = 100;

export class RunCurves {
  readonly runId: string;
  readonly latest = new LatestValues();
  readonly #rings = new Map<string, SeriesRing>();
  readonly #history = new Map<string, History>();
  readonly #ghosts = new Map<string, History>();
  readonly #dirty = new Set<string>();
  readonly #painters = new Map<string, Set<() => void>>();
  readonly #structure = new Set<() => void>();
  #names: readonly string[] = [];
  #chain: Chain = NO_CHAIN;
  /** Exact points that a replay still has to bring before they stand in for the history; 0 when there is none to wait for. */
  #awaited = 0;
  #held = 0;
  #frame = 0;
  #painted = 0;

  constructor(runId: string) {
    this.runId = runId;
  }

  readonly names = (): readonly string[] => this.#names;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#structure.add(listener);
    return () => this.#structure.delete(listener);
  };

  /** Calls `paint` in the animation frame after the series changed. */
  watch(series: string, paint: () => void): () => void {
    const painters = this.#painters.get(series) ?? new Set();
    this.#painters.set(series, painters.add(paint));
    return () => painters.delete(paint);
  }

  ring(series: string): SeriesRing | undefined {
    return this.#rings.get(series);
  }

  /** Points that the history sums up; the ring's come on top. */
  historyPoints(series: string): number {
    return this.#history.get(series)?.points ?? 0;
  }

  /** Newest fence that any exact point carries. */
  get newestFence(): number {
    let newest = 0;
    for (const ring of this.#rings.values())
      if (ring.length > 0) newest = Math.max(newest, ring.at("fence", ring.length - 1));
    return newest;
  }

  append(series: string, points: PointColumns): void {
    this.#ringOf(series).push(points);
    this.latest.points(series, points);
    this.#held += points.env_step.length;
    if (this.#awaited > 0) this.#catchUp();
    else this.#touch(series);
  }

  /** The history stays on screen until a replay from the beginning has brought `points` exact ones, which then replace it. */
  awaitReplay(points: number): void {
    this.#awaited = points;
  }

  #catchUp(): void {
    if (this.#held < this.#awaited) return;
    this.#awaited = 0;
    this.#history.clear();
    this.#ghosts.clear();
    for (const name of this.#rings.keys()) this.#touch(name);
  }

  /**
   * Begins anew, with or without a history; series known by name get an empty panel.
   * `ghosts` is the same history with its superseded part.
   */
  reset(names: readonly string[], history: SeriesResult | null, ghosts: SeriesResult | null = null): void {
    for (const ring of this.#rings.values()) ring.clear();
    this.#awaited = 0;
    this.#held = 0;
    this.#history.clear();
    this.#ghosts.clear();
    for (const name of names) this.#ringOf(name);
    for (const series of history?.series ?? []) this.#history.set(series.series, compress(series, history?.grid ?? []));
    for (const series of ghosts?.series ?? []) this.#ghosts.set(series.series, compress(series, ghosts?.grid ?? []));
    for (const name of this.#rings.keys()) this.#touch(name);
  }

  /** Exact points held for the longest series. */
  get longest(): number {
    return Math.max(0, ...[...this.#rings.values()].map((ring) => ring.length));
  }

  setChain(chain: Chain): void {
    this.#chain = chain;
    for (const name of this.#rings.keys()) this.#touch(name);
  }

  /** Whether the point at `index` of a ring was trained over by a later attempt. */
  isSuperseded(ring: SeriesRing, index: number): boolean {
    return isSuperseded(this.#chain, ring.at("fence", index), ring.at("env_step", index), ring.at("update", index));
  }

  /** What to draw. */
  curve(series: string, view: View): Curve {
    const curve: Curve = { x: [], y: [], low: [], high: [], ghost: [], points: 0 };
    if (view.superseded) addHistory(curve, this.#ghosts.get(series), "ghost");
    addHistory(curve, this.#history.get(series), "y");
    const ring = this.#rings.get(series);
    if (ring !== undefined && this.#awaited === 0) this.#addRing(curve, ring, view);
    return clip(ordered(curve), view);
  }

  #addRing(curve: Curve, ring: SeriesRing, view: View): void {
    for (let i = 0; i < ring.length; i += 1) {
      const superseded = this.isSuperseded(ring, i);
      if (superseded && !view.superseded) continue;
      const value = ring.at("value", i);
      const drawn = Number.isFinite(value) ? value : null;
      const counted = superseded ? null : drawn;
      curve.x.push(ring.at(view.axis, i));
      curve.y.push(counted);
      curve.low.push(counted);
      curve.high.push(counted);
      curve.ghost.push(superseded ? drawn : null);
      if (!superseded) curve.points += 1;
    }
  }

  #ringOf(series: string): SeriesRing {
    let ring = this.#rings.get(series);
    if (ring === undefined) {
      ring = new SeriesRing();
      this.#rings.set(series, ring);
      this.#names = [...this.#rings.keys()].sort();
      for (const listener of this.#structure) listener();
    }
    return ring;
  }

  #touch(series: string): void {
    this.#dirty.add(series);
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#paint(now));
  }

  #paint(now: number): void {
    if (now - this.#painted < PAINT_INTERVAL) {
      this.#frame = requestAnimationFrame((later) => this.#paint(later));
      return;
    }
    this.#painted = now;
    this.#frame = 0;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const series of dirty) for (const paint of this.#painters.get(series) ?? []) paint();
  }
}

function addHistory(curve: Curve, history: History | undefined, into: "y" | "ghost"): void {
  if (history === undefined) return;
  for (let i = 0; i < history.x.length; i += 1) {
    const counted = into === "y";
    curve.x.push(history.x[i] as number);
    curve.y.push(counted ? (history.mean[i] as number) : null);
    curve.low.push(counted ? (history.min[i] as number) : null);
    curve.high.push(counted ? (history.max[i] as number) : null);
    curve.ghost.push(counted ? null : (history.mean[i] as number));
  }
  if (into === "y") curve.points += history.points;
}

function compress(series: SeriesResult["series"][number], grid: readonly number[]): History {
  const history: History = { x: [], mean: [], min: [], max: [], points: series.points };
  for (let i = 0; i < grid.length; i += 1) {
    const mean = series.mean[i];
    if (mean === null || mean === undefined) continue;
    history.x.push(grid[i] ?? 0);
    history.mean.push(mean);
    history.min.push(series.min[i] ?? mean);
    history.max.push(series.max[i] ?? mean);
  }
  return history;
}

/** Charts need ascending x; points that came late are sorted in. */
function ordered(curve: Curve): Curve {
  const { x } = curve;
  if (x.every((value, i) => i === 0 || (x[i - 1] as number) <= value)) return curve;
  return pickRows(
    curve,
    x.map((_, i) => i).sort((a, b) => (x[a] as number) - (x[b] as number) || a - b),
  );
}

function clip(curve: Curve, { start, end }: View): Curve {
  if (start === undefined && end === undefined) return curve;
  const inside = (x: number) => (start === undefined || x >= start) && (end === undefined || x <= end);
  return pickRows(
    curve,
    [...curve.x.keys()].filter((i) => inside(curve.x[i] as number)),
  );
}

function pickRows(curve: Curve, rows: readonly number[]): Curve {
  const pick = <T>(column: readonly T[]) => rows.map((i) => column[i] as T);
  const { x, y, low, high, ghost, points } = curve;
  return { x: pick(x), y: pick(y), low: pick(low), high: pick(high), ghost: pick(ghost), points };
}
