"""The bus of a single server process."""

import asyncio

from app.bus.base import Subscription


class MemoryBus:
    """Notifies subscribers within this process; see `app.bus.base.Bus`."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def publish(self, topic: str) -> None:
        """Notifies the subscribers of a topic."""
        for subscription in tuple(self._subscriptions):
            subscription.notify(topic)

    def subscribe(self, *topics: str) -> Subscription:
        """Returns a subscription to these topics that starts now."""
        subscription = Subscription(frozenset(topics))
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription."""
        self._subscriptions.discard(subscription)

    async def run(self) -> None:
        """Waits until cancelled: a single process needs no transport."""
        await asyncio.Event().wait()

    async def wait_until_connected(self, seconds: float) -> bool:  # noqa: ARG002 - of the protocol
        """Returns true, since there is no other process."""
        return True
