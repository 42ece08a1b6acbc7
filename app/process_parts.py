"""Starts and stops the parts of the process: database, bus, ingest, live stream and daemons.

Imported by `app.main` alone.
"""

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, Self

import structlog
from starlette.datastructures import State

from app.bus import Bus, make_bus, publish_all
from app.cancellation import cancel_all
from app.daemons import main as daemons
from app.daemons import uptime
from app.db.engine import Database
from app.services.access import stream_rights
from app.services.artifacts.blob_store import BlobStore
from app.services.events.hub import EventHub
from app.services.storage import Storage
from app.services.telemetry.group_commit import Intake
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings

_log = structlog.get_logger("palestra.server")

_RESERVED_CONNECTIONS: Final = 5
"""Connections for what goes on while requests use all of the others: daemons, workers, streams."""
DAEMON_RESTART_SECONDS: Final = 2.0
SWITCH_SECONDS: Final = 0.0005
"""Time after which a thread that computes leaves the interpreter to another one.

The event loop gives the interpreter away each time it waits, and so do the threads of SQLite. By
Python's default of 5 ms each of them would wait so long for a thread that encodes points.
"""


async def start(state: State, stack: AsyncExitStack) -> None:
    """Starts every part and stores it in `state`; the stack stops the parts in reverse order."""
    sys.setswitchinterval(SWITCH_SECONDS)
    settings: Settings = state.settings
    database = Database(settings.database)
    stack.push_async_callback(database.dispose)
    reserved = database.reserve(_RESERVED_CONNECTIONS)
    stack.push_async_callback(reserved.dispose)
    bus = make_bus(settings)
    database.listeners.append(partial(publish_all, bus))
    hub = EventHub(
        reserved,
        bus,
        most=settings.sse_streams,
        most_per_user=settings.sse_streams_per_user,
        most_per_credential=settings.sse_streams_per_credential,
    )
    intake = Intake(reserved)
    state.database, state.reserved = database, reserved
    state.bus, state.hub, state.intake = bus, hub, intake
    state.store = BlobStore(settings.artifact_dir, settings.reserve_mib * 2**20)
    state.broker_users = BrokerUsers(settings)
    state.storage = Storage((database, reserved), state.store, settings.sqlite_path)
    group = await stack.enter_async_context(_Background())
    for work in (
        bus.run(),
        hub.run(),
        stream_rights.watch(hub, reserved, bus, settings),
        intake.run(),
        state.touches.run(reserved),
        state.refusals.run(reserved),
        uptime.count_periodically(reserved),
        state.broker_users.run(reserved, bus),
    ):
        group.start(work)
    if settings.daemons:
        group.start(_keep_daemons(reserved, settings, bus, state.broker_users))
    stack.callback(hub.close)


class _Background:
    """Tasks that run until the context exits."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts a background task and logs its failure, since it is not awaited."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)

    async def __aenter__(self) -> Self:
        """Returns the group, which has no tasks yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancels the tasks, the newest first, and waits for each."""
        for task in reversed(self._tasks):
            await cancel_all([task])


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("server.part_failed", exc_info=task.exception())


async def _keep_daemons(
    database: Database, settings: Settings, bus: Bus, broker_users: BrokerUsers
) -> None:
    """Runs the daemons and restarts them when they fail, since their state is in the database."""
    while True:
        try:
            await daemons.run(database, settings, bus, broker_users)
        # The server goes on after a failure of the daemons, so they are restarted.
        except Exception as error:  # noqa: BLE001
            _log.error("daemons.failed", exc_info=error)
        await asyncio.sleep(DAEMON_RESTART_SECONDS)
