"""Counts how long servers are up.

Runs in every process that serves the API, so that the reaper knows when workers could reach a
server.
"""

from functools import partial
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import uptime

_log = structlog.get_logger("palestra.uptime")

PERIOD: Final = 2.0


async def count_periodically(database: Database, period: float = PERIOD) -> None:
    """Adds to the counter every `period` seconds until cancelled."""
    # Counting fails while the database cannot be reached, so that time counts as downtime.
    await run_periodically(
        partial(count_once, database, period), period, log=_log, failed="uptime.failed"
    )


async def count_once(database: Database, period: float = PERIOD) -> None:
    """Adds the time since the last count, at most two periods, so that outages do not count."""
    async with database.write() as session:
        await uptime.count(session, 2 * period)
