"""Liveness and readiness of the process. The routes need no login and reveal nothing else."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request

from app.api.deps import get_database
from app.api.errors import HttpProblemError
from app.domain.errors import STORAGE_RETRY_SECONDS
from app.services.queue.dispatcher_lease import Place, find_dispatcher
from palestra.contract.views import View

router = APIRouter(tags=["health"])


class Health(View):
    """The answer of a healthy server."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """The answer of a server that can work."""

    dispatcher: Place
    """Where jobs are assigned to workers: in this process, in another one, or nowhere.

    A server that stopped is replaced by another one within some seconds.
    """


@router.get("/healthz")
async def healthz() -> Health:
    """Returns 200 while the process runs."""
    return Health()


@router.get("/readyz", responses={503: {}})
async def readyz(request: Request) -> Readiness:
    """Answers 200 when the server can work, else 503 with the reason.

    The database must answer, every part must have started, and the disks must take writes.
    """
    try:
        async with asyncio.timeout(5):
            place = await find_dispatcher(get_database(request))
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
    return Readiness(dispatcher=place)
