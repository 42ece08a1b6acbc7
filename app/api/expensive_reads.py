"""Bounds the expensive reads of a person that a server process does at the same time.

A list, a query of curves or an aggregate may read all runs of a project. The database ends each of
its statements at a deadline; here a person's further reads wait until earlier ones have ended, so
that they leave processors and connections to others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from fastapi import Depends, Request

from app.api.auth import Reader
from app.domain.errors import TooManyRequestsError

AT_ONCE: Final = 2
"""Expensive reads of a person that run at the same time."""
WAIT_SECONDS: Final = 10.0
"""Longest time that a further read waits."""


class ExpensiveReads:
    """Lets a person's reads run `AT_ONCE`, in the order in which they came.

    Args:
        wait_seconds: Longest time that a read waits for others to end.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._gates = WeakValueDictionary[str, asyncio.Semaphore]()
        """By user ID; a gate lives while reads run or wait."""

    @asynccontextmanager
    async def take_turn(self, user_id: str) -> AsyncIterator[None]:
        """Waits for the turn of a read, which lasts for the block.

        Raises:
            TooManyRequestsError: `too_many_reads` if the earlier reads did not end in time.
        """
        gate = self._gates.setdefault(user_id, asyncio.Semaphore(AT_ONCE))
        try:
            async with asyncio.timeout(self._wait_seconds):
                await gate.acquire()
        except TimeoutError:
            raise TooManyRequestsError(
                "too_many_reads",
                f"{AT_ONCE} of your lists, curves or aggregates are being read for more than "
                f"{self._wait_seconds:g} s. Send the next one when they have ended.",
                retry_after=1,
            ) from None
        try:
            yield
        finally:
            gate.release()


async def _wait_for_turn(request: Request, principal: Reader) -> AsyncIterator[None]:
    reads: ExpensiveReads = request.app.state.expensive_reads
    async with reads.take_turn(principal.person_id):
        yield


ExpensiveRead: Final = Depends(_wait_for_turn, scope="function")
"""Dependency of the routes whose answers may take all runs of a project."""
