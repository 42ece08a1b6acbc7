/** Serves the tabs of a browser by one shared connection, each over a message port. */
import type { FromTab, ToTab } from "./connectionTypes";
import type { Follower } from "./follower";
import type { SharedConnection } from "./sharedConnection";

/** Browsers run the timers of hidden tabs once a minute, and those of frozen tabs not at all. */
export const TAB_SILENCE = 200_000;

/** What of a `MessagePort` is used. */
export interface Port {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
}

export class PortServer {
  readonly #connection: SharedConnection;
  readonly #tabs = new Map<Port, { followers: Map<number, Follower>; seenAt: number }>();

  constructor(connection: SharedConnection) {
    this.#connection = connection;
    connection.onStatus = (status) => this.#broadcast({ kind: "status", status });
    connection.onDenied = () => this.#broadcast({ kind: "denied" });
  }

  serve(port: Port): void {
    port.onmessage = ({ data }) => this.#take(port, data as FromTab);
    this.#find(port);
    send(port, { kind: "status", status: this.#connection.status });
  }

  /** Drops tabs that were silent for too long, as a crashed one is. */
  dropSilent(): void {
    for (const [port, tab] of this.#tabs)
      if (Date.now() - tab.seenAt > TAB_SILENCE) {
        this.#leave(port);
        send(port, { kind: "dropped" });
      }
  }

  #take(port: Port, message: FromTab): void {
    const tab = this.#find(port);
    tab.seenAt = Date.now();
    if ("csrfToken" in message) this.#connection.csrfToken = message.csrfToken;
    if (message.kind === "leave") this.#leave(port);
    if (message.kind === "unfollow") this.#unfollow(tab.followers, message.id);
    if (message.kind === "follow") {
      const { id, subscription } = message;
      this.#unfollow(tab.followers, id);
      const follower = {
        subscription,
        onEvents: (texts: readonly string[]) => send(port, { kind: "events", id, texts }),
        onResync: () => send(port, { kind: "resync", id }),
      };
      tab.followers.set(id, follower);
      this.#connection.follow(follower);
    }
  }

  #find(port: Port) {
    const known = this.#tabs.get(port);
    const tab = known ?? { followers: new Map<number, Follower>(), seenAt: Date.now() };
    this.#tabs.set(port, tab);
    return tab;
  }

  #unfollow(followers: Map<number, Follower>, id: number): void {
    const follower = followers.get(id);
    if (follower === undefined) return;
    followers.delete(id);
    this.#connection.unfollow(follower);
  }

  #leave(port: Port): void {
    const followers = this.#tabs.get(port)?.followers;
    for (const id of [...(followers?.keys() ?? [])]) if (followers) this.#unfollow(followers, id);
    this.#tabs.delete(port);
  }

  #broadcast(message: ToTab): void {
    for (const port of this.#tabs.keys()) send(port, message);
  }
}

function send(port: Port, message: ToTab): void {
  port.postMessage(message);
}
