/** Who receives the events of a subscription, each event once. */
import type { Subscription } from "./connectionTypes";

/** Whoever receives the events of one subscription. */
export interface Follower {
  subscription: Subscription;
  /** Takes events as JSON texts, in the order of their IDs. */
  onEvents(texts: readonly string[]): void;
  onResync(): void;
}

/** Passes an event on, unless the follower has received it, and moves its cursor there. */
export function deliver(follower: Follower | undefined, id: number, text: string): void {
  if (follower === undefined || id <= (follower.subscription.after ?? -1)) return;
  follower.subscription.after = id;
  follower.onEvents([text]);
}
