"""Waits until a transaction waits for one that another task holds open."""

import asyncio
from typing import Any

from sqlalchemy import text

from app.db.engine import Database
from tests.support.waiting import until

_WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def until_locked_out(database: Database, task: asyncio.Task[Any]) -> None:
    """Waits until the transaction of `task` waits for the other open one, or `task` has ended.

    On SQLite a second writing transaction waits from its first statement on.
    """

    async def is_locked_out() -> bool:
        if task.done():
            return True
        if database.engine.dialect.name == "sqlite":
            pool: Any = database.writer.pool
            return bool(pool._pool._queue._getters)  # No count of them is public.
        async with database.read() as session:
            return bool(await session.scalar(_WAITING))

    await until(is_locked_out, "a transaction waits for another one")
