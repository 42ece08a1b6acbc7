/**
 * The live stream of a tab. A page sets its scope and the cursor that its history reached; the
 * stream delivers the events after the cursor, reconnects after the last one and reports its state.
 */
import type { EventSourceMessage } from "eventsource-parser";
import { buildAddress, type Parameters } from "@/api/client";
import { pathIn } from "@/api/queries";
import type { LiveEvent } from "@/api/types";
import { computeWait, readRetryAfter } from "@/lib/outage";
import { pause } from "@/lib/pause";
import { readMessages } from "./sse";

export type StreamState = "connecting" | "live" | "reconnecting" | "paused" | "off";

export interface Status {
  state: StreamState;
  /** Time when the server last sent anything, in milliseconds since the epoch. */
  lastMessageAt: number | null;
  attempt: number;
}

export interface Scope {
  /** Slug of the project; `null` follows all projects that the caller may read. */
  project: string | null;
  /**
   * Filters of the stream, for example `{ run: "run_…" }`; `{}` selects all events.
   */
  filter: Parameters;
  /** Last event that the history includes; `null` starts at the next event. */
  after: number | null;
  onEvents(events: readonly LiveEvent[]): void;
  /** The server no longer holds the events after our cursor: load the history again. */
  onResync(): void;
}

export interface Transport {
  fetch: typeof fetch;
  random(): number;
}

const FIRST_DELAY = 400;
const LONGEST_DELAY = 10_000;
/**
 * The server sends a comment at least every 15 s; after a longer silence the connection counts as
 * lost.
 */
const SILENCE = 40_000;

export class LiveStream {
  #scope: Scope | null = null;
  #cursor: number | null = null;
  #abort: AbortController | null = null;
  #status: Status = { state: "off", lastMessageAt: null, attempt: 0 };
  #paused = false;
  /** Seconds for which the server that refused the last connection asked to wait. */
  #retryAfter: number | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #transport: Transport;

  constructor(transport: Transport = { fetch: (...args) => fetch(...args), random: Math.random }) {
    this.#transport = transport;
  }

  readonly status = (): Status => this.#status;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Called when the session is no longer valid. */
  onDenied: () => void = () => undefined;

  /** Last event seen. */
  get cursor(): number | null {
    return this.#cursor;
  }

  /** Replaces the scope; the function that is returned closes it. */
  open(scope: Scope): () => void {
    this.#scope = scope;
    this.#cursor = scope.after;
    this.#connect();
    return () => {
      if (this.#scope === scope) this.close();
    };
  }

  close(): void {
    this.#scope = null;
    this.#stop();
    this.#set({ state: "off", lastMessageAt: null, attempt: 0 });
  }

  /** Delivers nothing until the next `open`: events in transit would belong to an old history. */
  detach(): void {
    this.#scope = null;
    this.#stop();
  }

  /** Disconnects; `resume` catches up from the same cursor. */
  pause(): void {
    this.#paused = true;
    this.#stop();
    if (this.#scope) this.#set({ ...this.#status, state: "paused", attempt: 0 });
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#scope) this.#connect();
  }

  #stop(): void {
    this.#abort?.abort();
    this.#abort = null;
  }

  #connect(): void {
    this.#stop();
    if (this.#paused) {
      this.#set({ ...this.#status, state: "paused" });
      return;
    }
    this.#set({ ...this.#status, state: "connecting", attempt: 0 });
    const abort = new AbortController();
    this.#abort = abort;
    void this.#run(abort);
  }

  async #run(abort: AbortController): Promise<void> {
    for (let attempt = 0; !abort.signal.aborted; attempt += 1) {
      if (attempt > 0) this.#set({ ...this.#status, state: "reconnecting", attempt });
      this.#retryAfter = null;
      const received = await this.#session(abort).catch(() => false);
      if (abort.signal.aborted) return;
      if (received) attempt = 0;
      this.#set({ ...this.#status, state: "reconnecting", attempt: attempt + 1 });
      const delay =
        Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** attempt) *
        (0.7 + 0.6 * this.#transport.random());
      await pause(Math.max(delay, computeWait(this.#retryAfter)), abort.signal);
    }
  }

  /** Runs one connection until it ends. Returns whether the server accepted it. */
  async #session(abort: AbortController): Promise<boolean> {
    const scope = this.#scope;
    if (scope === null) return false;
    const connection = new AbortController();
    const leave = () => connection.abort();
    abort.signal.addEventListener("abort", leave);
    let watchdog = setTimeout(leave, SILENCE);
    const received = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(leave, SILENCE);
      this.#markLive();
    };
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.#cursor !== null) headers["last-event-id"] = String(this.#cursor);
      const url = buildAddress(pathIn(scope.project, "/events"), {
        ...scope.filter,
        after: this.#cursor,
      });
      const init: RequestInit = {
        headers,
        credentials: "same-origin",
        signal: connection.signal,
        cache: "no-store",
      };
      const response = await this.#transport.fetch(url, init);
      if (response.status === 401) this.onDenied();
      if (!response.ok) this.#retryAfter = readRetryAfter(response.headers);
      if (!response.ok || response.body === null) return false;
      received();
      for await (const message of readMessages(response.body, received)) {
        if (abort.signal.aborted) return true;
        this.#deliver(scope, message);
      }
      return true;
    } finally {
      clearTimeout(watchdog);
      abort.signal.removeEventListener("abort", leave);
      connection.abort();
    }
  }

  #deliver(scope: Scope, message: EventSourceMessage): void {
    if (message.event === "resync") {
      scope.onResync();
      return;
    }
    const event = parse(message);
    if (event === null) return;
    // A server may repeat events after a reconnect; a point must not be added twice.
    if (this.#cursor !== null && event.id <= this.#cursor) return;
    this.#cursor = event.id;
    scope.onEvents([event]);
  }

  #markLive(): void {
    this.#set({ state: "live", lastMessageAt: Date.now(), attempt: 0 });
  }

  #set(status: Status): void {
    const same = status.state === this.#status.state && status.attempt === this.#status.attempt;
    const recent = (status.lastMessageAt ?? 0) - (this.#status.lastMessageAt ?? 0) < 1000;
    if (same && recent) return;
    this.#status = status;
    for (const listener of this.#listeners) listener();
  }
}

function parse(message: EventSourceMessage): LiveEvent | null {
  try {
    const event = JSON.parse(message.data) as LiveEvent;
    return typeof event.id === "number" ? event : null;
  } catch {
    return null;
  }
}
