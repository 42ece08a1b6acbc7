/**
 * The curves of the board's panels. Panels that are visible share queries; others are asked for
 * when they are scrolled to.
 */
import { ApiError } from "@/api/client";
import type { GridGroup, GridSeries, SeriesQuery, SeriesResult } from "@/api/types";
import { computeRetryDelay, isTransient } from "@/lib/outage";
import { type BoardView, buildBoardQuery, divideNames } from "./boardQuery";

export interface PanelCurves {
  /** Positions on x, one per bucket. */
  grid: readonly number[];
  series: readonly GridSeries[];
  groups: readonly GridGroup[];
}

export interface PanelState {
  /** `null` until the first answer; that of the view before until the next one arrives. */
  curves: PanelCurves | null;
  error: ApiError | null;
  loading: boolean;
}

type Ask = (query: SeriesQuery, signal: AbortSignal) => Promise<SeriesResult>;

/** Collects panels that become visible in the same moment. */
const GATHER_MS = 30;
/** The time without a change of the view after which the server is asked. */
const SETTLE_MS = 220;
const EMPTY: PanelState = { curves: null, error: null, loading: true };
const NOTHING: PanelCurves = { grid: [], series: [], groups: [] };

export class PanelStore {
  readonly #ask: Ask;
  readonly #states = new Map<string, PanelState>();
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #visible = new Set<string>();
  /** Names whose curves are those of the view. */
  readonly #fresh = new Set<string>();
  #view: BoardView | null = null;
  #running = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** Queries that the server has not answered. */
  #open = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  readonly state = (name: string): PanelState => this.#states.get(name) ?? EMPTY;

  watch(name: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Shows another view: what is drawn stays until the server has answered. */
  show(view: BoardView): void {
    const isFirst = this.#view === null;
    this.#view = view;
    this.#abort();
    for (const name of this.#visible) this.#set(name, { ...this.state(name), loading: true });
    this.#schedule(isFirst ? GATHER_MS : SETTLE_MS);
  }

  /** Says whether a panel is visible. */
  setVisible(name: string, visible: boolean): void {
    if (!visible) this.#visible.delete(name);
    else if (!this.#visible.has(name)) {
      this.#visible.add(name);
      if (!this.#fresh.has(name)) this.#schedule(GATHER_MS);
    }
  }

  /** Asks again for the visible panels, whose runs have gone on. */
  refresh(): void {
    if (this.#timer !== undefined || this.#open > 0) return;
    this.#fresh.clear();
    this.#schedule(GATHER_MS);
  }

  /** Asks again for one panel after an error. */
  retry(name: string): void {
    this.#fresh.delete(name);
    this.#set(name, { ...this.state(name), error: null, loading: true });
    this.#schedule(GATHER_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#abort();
  }

  #abort(): void {
    this.#running.abort();
    this.#running = new AbortController();
    this.#fresh.clear();
  }

  #schedule(delay: number): void {
    if (this.#timer !== undefined && delay === GATHER_MS) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#load();
    }, delay);
  }

  #load(): void {
    const view = this.#view;
    if (view === null || view.runs.length === 0) return;
    const names = [...this.#visible].filter((name) => !this.#fresh.has(name));
    for (const name of names) this.#fresh.add(name);
    for (const part of divideNames(view, names)) void this.#query(view, part);
  }

  async #query(view: BoardView, names: readonly string[]): Promise<void> {
    const { signal } = this.#running;
    this.#open += 1;
    try {
      const found = await this.#ask(buildBoardQuery(view, names), signal);
      if (signal.aborted) return;
      this.#failures = 0;
      for (const name of names) this.#accept(name, select(found, name));
    } catch (reason) {
      if (signal.aborted) return;
      this.#recover(view, names, toError(reason));
    } finally {
      this.#open -= 1;
    }
  }

  /** Goes on without what the server refused, where it says which panel that is. */
  #recover(view: BoardView, names: readonly string[], error: ApiError): void {
    if (error.code === "range_without_data") {
      for (const name of names) this.#accept(name, NOTHING);
      return;
    }
    const refused = error.code === "unknown_series" ? findRefused(error, names) : undefined;
    if (refused !== undefined) {
      this.#accept(refused, NOTHING);
      const others = names.filter((name) => name !== refused);
      if (others.length > 0) void this.#query(view, others);
      return;
    }
    if (error.code === "query_too_large" && names.length > 1) {
      const half = Math.ceil(names.length / 2);
      void this.#query(view, names.slice(0, half));
      void this.#query(view, names.slice(half));
      return;
    }
    for (const name of names) this.#set(name, { ...this.state(name), error, loading: false });
    if (!isTransient(error)) return;
    for (const name of names) this.#fresh.delete(name);
    this.#schedule(computeRetryDelay(this.#failures, error));
    this.#failures += 1;
  }

  #accept(name: string, curves: PanelCurves): void {
    this.#set(name, { curves, error: null, loading: false });
  }

  #set(name: string, state: PanelState): void {
    this.#states.set(name, state);
    for (const listener of this.#listeners.get(name) ?? []) listener();
  }
}

function select(found: SeriesResult, name: string): PanelCurves {
  return {
    grid: found.grid,
    series: found.series.filter((one) => one.series === name),
    groups: found.groups.filter((one) => one.series === name),
  };
}

function findRefused(error: ApiError, names: readonly string[]): string | undefined {
  for (const { pointer } of error.errors) {
    const index = /^\/names\/(\d+)$/.exec(pointer)?.[1];
    if (index !== undefined) return names[Number(index)];
  }
  return undefined;
}

function toError(reason: unknown): ApiError {
  return reason instanceof ApiError ? reason : new ApiError({ status: 0, detail: String(reason) });
}
