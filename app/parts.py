"""Starts and stops what lives as long as the process: database, bus, ingest, daemons. Imported by `app.main` alone."""

import asyncio
import contextlib
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

from starlette.datastructures import State

from app.db.engine import Database
from app.settings import Settings


async def start(state: State, stack: AsyncExitStack) -> None:
    """Starts every part into `state`; the stack stops them in reverse order."""
    settings: Settings = state.settings
    database = Database(settings.database)
    state.database = database
    stack.push_async_callback(database.dispose)
    await _in_background(stack, state.touches.run(database, settings.idempotency_seconds))


async def _in_background(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)
