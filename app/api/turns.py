"""Bounds what a server process does at the same time for one person.

Requests of one kind take turns: further ones of the person wait until earlier ones have ended, so
that they leave processors, connections and the database's lock to others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from app.domain.errors import TooManyRequestsError

WAIT_SECONDS: Final = 10.0
"""Longest time that a further request waits."""


class Turns:
    """Lets some requests of each person run at a time, in the order in which they came.

    Args:
        at_once: Requests of a person that run at the same time.
        code: Code of the refusal of a request that waited too long.
        kind: The requests in the plural, as the refusal names them.
        wait_seconds: Longest time that a request waits for others to end.
    """

    def __init__(
        self, at_once: int, code: str, kind: str, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._at_once = at_once
        self._code = code
        self._kind = kind
        self._wait_seconds = wait_seconds
        self._gates = WeakValueDictionary[str, asyncio.Semaphore]()
        """By user ID; a gate lives while requests run or wait."""

    @asynccontextmanager
    async def take_turn(self, user_id: str) -> AsyncIterator[None]:
        """Waits for the turn of a request, which lasts for the block.

        Raises:
            TooManyRequestsError: If the earlier requests did not end in time.
        """
        gate = self._gates.setdefault(user_id, asyncio.Semaphore(self._at_once))
        try:
            async with asyncio.timeout(self._wait_seconds):
                await gate.acquire()
        except TimeoutError:
            raise TooManyRequestsError(
                self._code,
                f"Of your {self._kind}, {self._at_once} at a time are served, and the earlier ones "
                f"took more than {self._wait_seconds:g} s. Send the next one when they have ended.",
                retry_after=1,
            ) from None
        try:
            yield
        finally:
            gate.release()
