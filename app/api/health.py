"""Liveness and readiness of the process. The routes need no login and reveal nothing else."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final, Literal

from fastapi import Request

from app.api.deps import get_broker_users
from app.api.errors import HttpProblemError
from app.api.resource_router import ResourceRouter
from app.domain.errors import STORAGE_RETRY_SECONDS
from app.services.queue.dispatcher_lease import Place, find_dispatcher
from app.services.workers.broker_users import WorkerBrokerUsers
from palestra.contract.views import View

router = ResourceRouter(tags=["health"])

_CHECK_SECONDS: Final = 0.1
"""Least time between two checks of database and disks, which anybody may ask for."""


class Health(View):
    """The answer of a healthy server."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """The answer of a server that can work."""

    dispatcher: Place
    """Where jobs are assigned to workers: in this process, in another one, or nowhere.

    A server that stopped is replaced by another one within some seconds.
    """
    worker_broker_users: WorkerBrokerUsers
    """Whether each worker has a user of the broker with its own queue only, or all share one since
    the broker does not let the server make users; unknown until the broker first answered.
    """


class ReadinessCheck:
    """Checks whether the server can work; requests soon after a check share its answer.

    Args:
        clock: Monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._checked_at = -math.inf
        self._answer: Readiness | HttpProblemError

    async def run(self, request: Request) -> Readiness:
        """Returns that the server is ready.

        Raises:
            HttpProblemError: If it is not: 503 with the reason.
        """
        async with self._lock:
            if self._clock() - self._checked_at >= _CHECK_SECONDS:
                try:
                    self._answer = await _check(request)
                except HttpProblemError as problem:
                    self._answer = problem
                self._checked_at = self._clock()
        if isinstance(self._answer, HttpProblemError):
            raise self._answer.with_traceback(None)
        return self._answer


@router.get("/healthz")
async def healthz() -> Health:
    """Returns 200 while the process runs."""
    return Health()


@router.get("/readyz", responses={503: {}})
async def readyz(request: Request) -> Readiness:
    """Answers 200 when the server can work, else 503 with the reason.

    The database must answer, every part must have started, and the disks must take writes.
    """
    check: ReadinessCheck = request.app.state.readiness
    return await check.run(request)


async def _check(request: Request) -> Readiness:
    try:
        async with asyncio.timeout(5):
            place = await find_dispatcher(request.app.state.reserved)
    except Exception:  # noqa: BLE001 - whatever the reason, the server is not ready
        raise HttpProblemError(
            503,
            "database_unavailable",
            "The database does not answer. Check its address and that it runs.",
        ) from None
    if not getattr(request.app.state, "ready", False):
        raise HttpProblemError(
            503,
            "starting",
            "The server is still starting. Try again in a moment.",
            headers={"Retry-After": "1"},
        )
    full = await request.app.state.storage.find_fault()
    if full is not None:
        raise HttpProblemError(
            503, "storage_full", full, headers={"Retry-After": str(STORAGE_RETRY_SECONDS)}
        )
    return Readiness(dispatcher=place, worker_broker_users=get_broker_users(request).kind)
