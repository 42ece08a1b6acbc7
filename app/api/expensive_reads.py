"""Bounds the expensive reads of a person that a server process does at the same time.

A list, a query of curves or an aggregate may read all runs of a project. The database ends each of
its statements at a deadline; here a person's further reads wait until earlier ones have ended.
"""

from collections.abc import AsyncIterator
from typing import Final

from fastapi import Depends, Request

from app.api.auth import Reader
from app.api.turns import WAIT_SECONDS, Turns

MAX_CONCURRENT: Final = 2
"""Expensive reads of a person that run at the same time."""


def make_turns(wait_seconds: float = WAIT_SECONDS) -> Turns:
    """Returns the turns of expensive reads, for one process."""
    return Turns(MAX_CONCURRENT, "too_many_reads", "lists, curves and aggregates", wait_seconds)


async def _wait_for_turn(request: Request, principal: Reader) -> AsyncIterator[None]:
    reads: Turns = request.app.state.expensive_reads
    async with reads.take_turn(principal.person_id):
        yield


ExpensiveRead: Final = Depends(_wait_for_turn, scope="function")
"""Dependency of the routes whose answers may take all runs of a project."""
