/**
 * The live updates of a tab. Pages open scopes with the cursor that their history reached; each
 * scope receives the events after its cursor, over the connection that all tabs share.
 */
import { getCsrfToken, type Parameters } from "@/api/client";
import type { LiveEvent } from "@/api/types";
import type { Status, ToTab } from "./connectionTypes";
import type { OpenPort, TabPort } from "./tabPort";

export type { Status, StreamState } from "./connectionTypes";

export interface Scope {
  /** Slug of the project; `null` follows all projects that the caller may read. */
  project: string | null;
  /**
   * Filters of the stream, for example `{ run: "run_…" }`; `{}` selects all events.
   */
  filter: Parameters;
  /**
   * Last event that the history includes; `null` starts at the next event, and asks for the history
   * again once it has started.
   */
  after: number | null;
  onEvents(events: readonly LiveEvent[]): void;
  /** Events between the history and the stream are missing: load the history again. */
  onResync(): void;
}

export interface OpenScope {
  close(): void;
  /** Delivers nothing more: events in transit would belong to an old history. */
  mute(): void;
}

interface Entry {
  scope: Scope;
  cursor: number | null;
  isMuted: boolean;
}

const ALIVE_MS = 20_000;

export class LiveStream {
  readonly #scopes = new Map<number, Entry>();
  readonly #listeners = new Set<() => void>();
  readonly #openPort: OpenPort;
  #port: TabPort | null = null;
  #status: Status = { state: "off", lastMessageAt: null, attempt: 0 };
  /** The status of the connection, whatever the tab shows. */
  #connected: Status = this.#status;
  #paused = false;
  #nextId = 1;

  constructor(openPort: OpenPort) {
    this.#openPort = openPort;
  }

  readonly status = (): Status => this.#status;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Called when the session is no longer valid. */
  onDenied: () => void = () => undefined;

  open(scope: Scope): OpenScope {
    const id = this.#nextId;
    this.#nextId += 1;
    const entry: Entry = { scope, cursor: scope.after, isMuted: false };
    this.#scopes.set(id, entry);
    // The effects of the page that opens, among them those that set the CSRF token, come first.
    setTimeout(() => this.#follow(id), 0);
    this.#show();
    return {
      close: () => {
        if (!this.#scopes.delete(id)) return;
        this.#port?.send({ kind: "unfollow", id });
        this.#show();
      },
      mute: () => {
        entry.isMuted = true;
      },
    };
  }

  /** Stops following; `resume` catches up from the same cursors. */
  pause(): void {
    this.#paused = true;
    for (const id of this.#scopes.keys()) this.#port?.send({ kind: "unfollow", id });
    this.#show();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#followAll();
    this.#show();
  }

  /** Leaves the shared connection, as the page is hidden for good or kept for going back. */
  leave(): void {
    this.#port?.send({ kind: "leave" });
  }

  /** Follows all scopes again, as the page was gone back to. */
  rejoin(): void {
    this.#followAll();
  }

  #followAll(): void {
    for (const id of this.#scopes.keys()) this.#follow(id);
  }

  #follow(id: number): void {
    const entry = this.#scopes.get(id);
    if (entry === undefined || this.#paused) return;
    if (this.#port === null) {
      this.#port = this.#openPort((message) => this.#take(message));
      setInterval(() => this.#port?.send({ kind: "alive", csrfToken: getCsrfToken() }), ALIVE_MS);
    }
    const { project, filter } = entry.scope;
    const subscription = {
      project,
      runs: list(filter.run),
      experiments: list(filter.experiment),
      types: list(filter.type),
      after: entry.cursor,
    };
    this.#port.send({ kind: "follow", id, subscription, csrfToken: getCsrfToken() });
  }

  #take(message: ToTab): void {
    if (message.kind === "status") {
      this.#connected = message.status;
      this.#show();
    } else if (message.kind === "denied") this.onDenied();
    else if (message.kind === "dropped") this.#followAll();
    else {
      const entry = this.#scopes.get(message.id);
      if (entry === undefined || entry.isMuted || this.#paused) return;
      if (message.kind === "resync") {
        entry.cursor = null;
        entry.scope.onResync();
      } else for (const text of message.texts) deliver(entry, text);
    }
  }

  #show(): void {
    const status: Status =
      this.#scopes.size === 0
        ? { state: "off", lastMessageAt: null, attempt: 0 }
        : this.#paused
          ? { ...this.#connected, state: "paused", attempt: 0 }
          : this.#connected.state === "off"
            ? { ...this.#connected, state: "connecting" }
            : this.#connected;
    const { state, attempt, lastMessageAt } = this.#status;
    const same = status.state === state && status.attempt === attempt;
    if (same && status.lastMessageAt === lastMessageAt) return;
    this.#status = status;
    for (const listener of this.#listeners) listener();
  }
}

function deliver(entry: Entry, text: string): void {
  const event = parse(text);
  // After a tab has joined again, an event may come twice; a point must not be added twice.
  if (event === null || (entry.cursor !== null && event.id <= entry.cursor)) return;
  entry.cursor = event.id;
  entry.scope.onEvents([event]);
}

function list(value: Parameters[string]): readonly string[] {
  if (value === null || value === undefined) return [];
  return Array.isArray(value) ? (value as readonly string[]) : [String(value)];
}

function parse(text: string): LiveEvent | null {
  try {
    const event = JSON.parse(text) as LiveEvent;
    return typeof event.id === "number" ? event : null;
  } catch {
    return null;
  }
}
