"""Counts how long servers are up.

Runs in every process that serves the API, so that the reaper knows when workers could reach a
server.
"""

import asyncio
from typing import Final

import structlog

from app.db.engine import Database
from app.db.repositories import uptime

_log = structlog.get_logger("palestra.uptime")

PERIOD: Final = 2.0


async def count_for_ever(database: Database, period: float = PERIOD) -> None:
    """Adds to the counter every `period` seconds until cancelled."""
    while True:
        try:
            await count_once(database, period)
        # A daemon outlives every failure; the time without a database counts as away.
        except Exception:  # noqa: BLE001
            _log.exception("uptime.failed")
        await asyncio.sleep(period)


async def count_once(database: Database, period: float = PERIOD) -> None:
    """Adds the time since the last count; of a pause or an outage, no more than two periods."""
    async with database.write() as session:
        await uptime.count(session, 2 * period)
