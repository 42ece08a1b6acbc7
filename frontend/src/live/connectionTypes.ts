/** What tabs and the shared connection say to each other. */
import { computeWait } from "@/lib/outage";

export type StreamState = "connecting" | "live" | "reconnecting" | "paused" | "off";

export interface Status {
  state: StreamState;
  /** Time when the server last sent anything, in milliseconds since the epoch. */
  lastMessageAt: number | null;
  attempt: number;
}

/** A subscription of the request, with the cursor that its follower has reached. */
export interface Subscription {
  project: string | null;
  runs: readonly string[];
  experiments: readonly string[];
  types: readonly string[];
  after: number | null;
}

export interface Transport {
  /** Sends a request to a path of the server, such as `/api/v1/events:poll`. */
  fetch(path: string, init: RequestInit): Promise<Response>;
  random(): number;
}

export type FromTab =
  | { kind: "follow"; id: number; subscription: Subscription; csrfToken: string | null }
  | { kind: "unfollow"; id: number }
  /** Sent from time to time, since a port does not tell that its tab has crashed. */
  | { kind: "alive"; csrfToken: string | null }
  | { kind: "leave" };

export type ToTab =
  | { kind: "events"; id: number; texts: readonly string[] }
  | { kind: "resync"; id: number }
  | { kind: "status"; status: Status }
  | { kind: "denied" }
  /** The tab was silent for too long: it has to follow its scopes again. */
  | { kind: "dropped" };

const FIRST_DELAY = 400;
const LONGEST_DELAY = 10_000;

/** Milliseconds until the next connection, after `attempt` failures in a row. */
export function chooseDelay(attempt: number, retryAfter: number | null, random: number): number {
  const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** attempt) * (0.7 + 0.6 * random);
  return Math.max(delay, computeWait(retryAfter));
}
