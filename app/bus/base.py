"""The interface of every bus; one test suite runs over all implementations."""

import asyncio
from typing import Protocol


class Subscription:
    """Collects the notifications for one subscriber.

    Notifications that arrive while the subscriber is busy are merged into one.

    Args:
        topics: Topics to receive.
    """

    def __init__(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self._notified: set[str] = set()
        self._wake = asyncio.Event()

    def notify(self, topic: str) -> None:
        """Wakes the subscriber if it has subscribed to the topic. Called by buses."""
        if topic in self.topics:
            self._notified.add(topic)
            self._wake.set()

    async def wait(self, seconds: float) -> frozenset[str]:
        """Returns the topics that changed since the last call, waiting for at most `seconds`.

        Empty if none changed.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return frozenset()
        notified = frozenset(self._notified)
        self._notified.clear()
        self._wake.clear()
        return notified


class Bus(Protocol):
    """Notifies all connected server processes of changed topics."""

    def publish(self, topic: str) -> None:
        """Notifies every subscriber of a topic.

        Never blocks and never raises; a notification that cannot be delivered is dropped.
        """

    def subscribe(self, *topics: str) -> Subscription:
        """Returns a subscription to these topics that starts now."""

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription."""

    async def run(self) -> None:
        """Delivers notifications until cancelled.

        Reconnects by itself when the connection to the broker is lost.
        """

    async def wait_until_connected(self, seconds: float) -> bool:
        """Waits at most `seconds` for the connection; returns whether notifications can arrive."""
