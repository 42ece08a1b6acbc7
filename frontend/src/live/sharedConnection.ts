/**
 * One connection for the scopes of all tabs (several where they have very many): a stream, or long polls where a proxy holds back the
 * stream. Each follower has its own cursor, after which the server resumes, so a connection can be
 * opened anew at any time without gap or overlap.
 */
import type { EventSourceMessage } from "eventsource-parser";
import { readRetryAfter } from "@/lib/outage";
import { pause } from "@/lib/pause";
import { chooseDelay, type Status, type Transport } from "./connectionTypes";
import { deliver, type Follower, moveCursors } from "./follower";
import { readMessages } from "./sse";

/** Gathers the changes of pages that open together. */
const GATHER_MS = 20;
/** The server sends something every 15 s; after a longer silence the connection counts as lost. */
const SILENCE = 40_000;
/** Time in which the first bytes of a stream must arrive, which the server sends at once. */
const FIRST_BYTES = 15_000;
const POLL_SECONDS = 25;
/** Time in which a poll must be answered; after a longer silence the connection counts as lost. */
const POLL_SILENCE = 1000 * POLL_SECONDS + 15_000;
/** Time after which a stream is tried again where only polls got through. */
const POLLING = 600_000;
/** The server takes so many subscriptions of one connection. */
const MOST_OF_ONE = 64;
const STREAM_PATH = "/api/v1/events:stream";
const POLL_PATH = "/api/v1/events:poll";

interface Polled {
  events: { subscriptions: number[]; event: { id: number } }[];
  cursors: number[];
  resync: number[];
}

export class SharedConnection {
  csrfToken: string | null = null;
  /** Called with each change of the status. */
  onStatus: (status: Status) => void = () => undefined;
  /** Called when the login is no longer valid. */
  onDenied: () => void = () => undefined;
  readonly #followers = new Set<Follower>();
  readonly #transport: Transport;
  #status: Status = { state: "off", lastMessageAt: null, attempt: 0 };
  #abort: AbortController | null = null;
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #pollsUntil = 0;
  #retryAfter: number | null = null;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get status(): Status {
    return this.#status;
  }

  follow(follower: Follower): void {
    this.#followers.add(follower);
    this.#changed();
  }

  unfollow(follower: Follower): void {
    if (this.#followers.delete(follower)) this.#changed();
  }

  /** Opens the connection anew, with the present followers. */
  #changed(): void {
    clearTimeout(this.#gathering);
    this.#gathering = setTimeout(() => {
      this.#abort?.abort();
      this.#abort = null;
      if (this.#followers.size === 0) {
        this.#set({ state: "off", lastMessageAt: null, attempt: 0 });
        return;
      }
      if (this.#status.state !== "live")
        this.#set({ ...this.#status, state: "connecting", attempt: 0 });
      const abort = new AbortController();
      this.#abort = abort;
      const all = [...this.#followers];
      for (let first = 0; first < all.length; first += MOST_OF_ONE)
        void this.#run(abort, new Set(all.slice(first, first + MOST_OF_ONE)));
    }, GATHER_MS);
  }

  async #run(abort: AbortController, group: Set<Follower>): Promise<void> {
    for (let attempt = 0; !abort.signal.aborted && group.size > 0; attempt += 1) {
      this.#retryAfter = null;
      const received = await this.#session(abort, group).catch(() => false);
      if (abort.signal.aborted) return;
      if (received) attempt = 0;
      this.#set({ ...this.#status, state: "reconnecting", attempt: attempt + 1 });
      await pause(chooseDelay(attempt, this.#retryAfter, this.#transport.random()), abort.signal);
    }
  }

  /** Runs one connection until it ends. Returns whether the server accepted it. */
  async #session(abort: AbortController, group: Set<Follower>): Promise<boolean> {
    const connection = new AbortController();
    const leave = () => connection.abort();
    abort.signal.addEventListener("abort", leave);
    try {
      return Date.now() < this.#pollsUntil
        ? await this.#poll(connection, group)
        : await this.#stream(connection, group);
    } finally {
      abort.signal.removeEventListener("abort", leave);
      connection.abort();
    }
  }

  async #stream(connection: AbortController, group: Set<Follower>): Promise<boolean> {
    const followers = [...group];
    let isOpen = false;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const watch = (milliseconds: number) => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => connection.abort(), milliseconds);
    };
    const received = () => {
      isOpen = true;
      watch(SILENCE);
      this.#markLive();
    };
    watch(FIRST_BYTES);
    try {
      const response = await this.#send(STREAM_PATH, group, {}, connection.signal);
      if (response === null) return false;
      if (response.body === null) return this.#switchToPolls();
      for await (const message of readMessages(response.body, received)) {
        if (connection.signal.aborted) return true;
        this.#take(followers, message);
      }
      return isOpen;
    } catch {
      const hasWaited = connection.signal.aborted && this.#abort?.signal.aborted === false;
      return !isOpen && hasWaited ? this.#switchToPolls() : isOpen;
    } finally {
      clearTimeout(watchdog);
    }
  }

  #switchToPolls(): boolean {
    this.#pollsUntil = Date.now() + POLLING;
    return true;
  }

  async #poll(connection: AbortController, group: Set<Follower>): Promise<boolean> {
    const followers = [...group];
    while (Date.now() < this.#pollsUntil) {
      const more = { wait: this.#status.state === "live" ? POLL_SECONDS : 0 };
      const watchdog = setTimeout(() => connection.abort(), POLL_SILENCE);
      const answer = await this.#send(POLL_PATH, group, more, connection.signal)
        .then((response) => response?.json() as Promise<Polled> | undefined)
        .finally(() => clearTimeout(watchdog));
      if (answer === undefined) return false;
      if (connection.signal.aborted) return true;
      this.#markLive();
      for (const { subscriptions, event } of answer.events)
        for (const number of subscriptions)
          deliver(followers[number], event.id, JSON.stringify(event));
      moveCursors(followers, answer.cursors);
      for (const number of answer.resync) followers[number]?.onResync();
    }
    return true;
  }

  /** Sends a request for the followers; returns `null` if it was refused. */
  async #send(
    path: string,
    group: Set<Follower>,
    more: object,
    signal: AbortSignal,
  ): Promise<Response | null> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.csrfToken !== null) headers["x-csrf-token"] = this.csrfToken;
    const followers = [...group];
    const subscriptions = followers.map((one) => one.subscription);
    const response = await this.#transport.fetch(path, {
      method: "POST",
      headers,
      body: JSON.stringify({ subscriptions, ...more }),
      credentials: "same-origin",
      cache: "no-store",
      signal,
    });
    if (response.ok) return response;
    this.#retryAfter = readRetryAfter(response.headers);
    if (response.status === 401 || response.status === 403) this.onDenied();
    const refused = await findRefused(response);
    // A project that is gone must not end the updates of the other pages.
    if (refused !== null && followers.length > 1) {
      const follower = followers[refused];
      if (follower !== undefined) {
        group.delete(follower);
        this.#followers.delete(follower);
      }
    }
    return null;
  }

  #take(followers: readonly Follower[], message: EventSourceMessage): void {
    if (message.event === "cursors") {
      moveCursors(followers, JSON.parse(message.data) as number[]);
      return;
    }
    const end = message.data.indexOf("\n");
    const numbers = message.data.slice(0, end).split(",").map(Number);
    for (const number of numbers) {
      const follower = followers[number];
      if (message.event !== "resync")
        deliver(follower, Number(message.id), message.data.slice(end + 1));
      else if (follower !== undefined) {
        follower.subscription.after = null;
        follower.onResync();
      }
    }
  }

  #markLive(): void {
    this.#set({ state: "live", lastMessageAt: Date.now(), attempt: 0 });
  }

  #set(status: Status): void {
    const same = status.state === this.#status.state && status.attempt === this.#status.attempt;
    const recent = (status.lastMessageAt ?? 0) - (this.#status.lastMessageAt ?? 0) < 1000;
    if (same && recent) return;
    this.#status = status;
    this.onStatus(status);
  }
}

/** The number of the subscription that a refusal names, or `null`. */
async function findRefused(response: Response): Promise<number | null> {
  const body = (await response.json().catch(() => null)) as {
    errors?: { pointer?: string }[];
  } | null;
  const found = /^\/subscriptions\/(\d+)\//.exec(body?.errors?.[0]?.pointer ?? "");
  return found === null ? null : Number(found[1]);
}
