/** Who receives the events of a subscription, each event once. */
import type { Subscription } from "./connectionTypes";

/** Whoever receives the events of one subscription. */
export interface Follower {
  subscription: Subscription;
  /** Takes events as JSON texts, in the order of their IDs. */
  onEvents(texts: readonly string[]): void;
  /** Loads the history again, since events may be missing between it and the cursor. */
  onResync(): void;
}

/** Passes an event on, unless the follower has received it, and moves its cursor there. */
export function deliver(follower: Follower | undefined, id: number, text: string): void {
  if (follower === undefined || id <= (follower.subscription.after ?? -1)) return;
  follower.subscription.after = id;
  follower.onEvents([text]);
}

/**
 * Moves followers to the cursors that the server has reached. One that begins without a cursor
 * loads its history again: events since it was loaded have not been delivered.
 */
export function moveCursors(followers: readonly Follower[], cursors: readonly number[]): void {
  followers.forEach((follower, number) => {
    const { after } = follower.subscription;
    follower.subscription.after = Math.max(after ?? 0, cursors[number] ?? 0);
    if (after === null) follower.onResync();
  });
}
