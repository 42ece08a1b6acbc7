"""What every bus does; one test suite runs over all implementations."""

import asyncio
from typing import Protocol


class Subscription:
    """Hears the topics of one subscriber.

    Rings that arrive while it is busy are merged into one.

    Args:
        topics: Topics to receive.
    """

    def __init__(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self._rung: set[str] = set()
        self._bell = asyncio.Event()

    def ring(self, topic: str) -> None:
        """Rings if the topic is one of ours. For buses."""
        if topic in self.topics:
            self._rung.add(topic)
            self._bell.set()

    async def wait(self, seconds: float) -> frozenset[str]:
        """Returns the topics that rang since the last call, waiting for one for at most `seconds`.

        Empty if none did.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return frozenset()
        rung = frozenset(self._rung)
        self._rung.clear()
        self._bell.clear()
        return rung


class Bus(Protocol):
    """Rings bells in all server processes that are connected to it."""

    def publish(self, topic: str) -> None:
        """Rings a topic everywhere.

        Never blocks and never raises; a bell that cannot be delivered is dropped.
        """
        ...

    def subscribe(self, *topics: str) -> Subscription:
        """Returns a subscription to these topics that begins now."""
        ...

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription."""
        ...

    async def run(self) -> None:
        """Carries bells until cancelled.

        Survives the loss of its server and comes back by itself.
        """
        ...

    async def connected(self, seconds: float) -> bool:
        """Returns whether bells of other processes arrive, after waiting for at most `seconds`."""
        ...
