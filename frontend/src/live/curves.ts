/**
 * The curves of one run: history in buckets up to a cursor, exact points from there on. Charts read
 * them once per animation frame; React is notified only when a series appears.
 */
import type { SeriesResult } from "@/api/types";
import {
  addBuckets,
  addPoints,
  type Buckets,
  type Curve,
  clip,
  createEmptyCurve,
  selectFilledBuckets,
  sortByX,
  type View,
} from "./curve";
import { type Chain, isSuperseded, NO_CHAIN } from "./fenceChain";
import { LatestValues } from "./latest";
import { Repaints } from "./repaints";
import { type PointColumns, SeriesRing } from "./seriesRing";

export class RunCurves {
  readonly runId: string;
  readonly latest = new LatestValues();
  readonly #rings = new Map<string, SeriesRing>();
  readonly #history = new Map<string, Buckets>();
  /** History that includes superseded points. */
  readonly #withSuperseded = new Map<string, Buckets>();
  readonly #repaints = new Repaints();
  readonly #nameListeners = new Set<() => void>();
  #names: readonly string[] = [];
  #chain: Chain = NO_CHAIN;
  /** Exact points that replace the history once a replay has brought them; 0 without a replay. */
  #awaited = 0;
  #received = 0;

  constructor(runId: string) {
    this.runId = runId;
  }

  readonly names = (): readonly string[] => this.#names;

  /** Calls `listener` when a series appears. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#nameListeners.add(listener);
    return () => this.#nameListeners.delete(listener);
  };

  /** Calls `paint` in an animation frame after each change of the series. */
  watch(series: string, paint: () => void): () => void {
    return this.#repaints.watch(series, paint);
  }

  ring(series: string): SeriesRing | undefined {
    return this.#rings.get(series);
  }

  /** Points that the history summarises; those of the ring are not among them. */
  historyPoints(series: string): number {
    return this.#history.get(series)?.points ?? 0;
  }

  append(series: string, points: PointColumns): void {
    this.#ringOf(series).push(points);
    this.latest.points(series, points);
    this.#received += points.env_step.length;
    if (this.#awaited > 0) this.#endReplayWhenComplete();
    else this.#repaints.request(series);
  }

  /**
   * Keeps showing the history until a replay from the run's first event has brought `points` exact
   * points, which then replace the history.
   */
  awaitReplay(points: number): void {
    this.#awaited = points;
  }

  #endReplayWhenComplete(): void {
    if (this.#received < this.#awaited) return;
    this.#awaited = 0;
    this.#history.clear();
    this.#withSuperseded.clear();
    this.#requestAll();
  }

  /**
   * Replaces everything by a history, or by nothing; series known by name get an empty panel.
   * `withSuperseded` is the same history including superseded points.
   */
  reset(
    names: readonly string[],
    history: SeriesResult | null,
    withSuperseded: SeriesResult | null = null,
  ): void {
    for (const ring of this.#rings.values()) ring.clear();
    this.#awaited = 0;
    this.#received = 0;
    for (const name of names) this.#ringOf(name);
    replace(this.#history, history);
    replace(this.#withSuperseded, withSuperseded);
    this.#requestAll();
  }

  /** Number of exact points of the longest series. */
  get longest(): number {
    return Math.max(0, ...[...this.#rings.values()].map((ring) => ring.length));
  }

  setChain(chain: Chain): void {
    this.#chain = chain;
    this.#requestAll();
  }

  /** Whether a later attempt superseded the point at `index` of a ring. */
  isSuperseded(ring: SeriesRing, index: number): boolean {
    return isSuperseded(
      this.#chain,
      ring.at("fence", index),
      ring.at("env_step", index),
      ring.at("update", index),
    );
  }

  /** The columns that a chart draws. */
  curve(series: string, view: View): Curve {
    const curve = createEmptyCurve();
    if (view.superseded) addBuckets(curve, this.#withSuperseded.get(series), "superseded");
    addBuckets(curve, this.#history.get(series), "y");
    const ring = this.#rings.get(series);
    if (ring !== undefined && this.#awaited === 0)
      addPoints(curve, ring, view, (index) => this.isSuperseded(ring, index));
    return clip(sortByX(curve), view);
  }

  #ringOf(series: string): SeriesRing {
    let ring = this.#rings.get(series);
    if (ring === undefined) {
      ring = new SeriesRing();
      this.#rings.set(series, ring);
      this.#names = [...this.#rings.keys()].sort();
      for (const listener of this.#nameListeners) listener();
    }
    return ring;
  }

  #requestAll(): void {
    for (const name of this.#rings.keys()) this.#repaints.request(name);
  }
}

function replace(buckets: Map<string, Buckets>, result: SeriesResult | null): void {
  buckets.clear();
  for (const series of result?.series ?? [])
    buckets.set(series.series, selectFilledBuckets(series, result?.grid ?? []));
}
