"""The space returner: gives the free pages of an SQLite file back to the file system."""

import asyncio
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import free_pages as rows

_log = structlog.get_logger("palestra.space_returner")

PERIOD: Final = 60.0
KEPT: Final = 2_048
"""Free pages (8 MiB) that stay for the next rows."""
BEGIN_AT: Final = 3 * KEPT
"""Free pages from which on pages are given back."""
STEP: Final = 128
"""Pages of a transaction: it holds up what others write for a few milliseconds."""
PAUSE: Final = 0.05
"""Seconds between two transactions, in which others write."""


class SpaceReturner:
    """Shortens the database file after much was deleted: a project, curves, old events.

    It does nothing on PostgreSQL, and with files that `palestra db vacuum` has not rewritten since
    the version that made them.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        """Looks for free pages once a minute until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="space_returner.failed")

    async def tick(self) -> int:
        """Gives back the free pages of the file, in small steps, but for those that are kept.

        Returns:
            The number of pages.
        """
        before = now = await self._count()
        if before is None or now is None or before.free < BEGIN_AT:
            return 0
        while now.free > KEPT:
            async with self._database.write() as session:
                await rows.give_back(session, min(STEP, now.free - KEPT))
            await asyncio.sleep(PAUSE)
            last, now = now, await self._count() or now
            if now.total >= last.total:
                break
        pages = before.total - now.total
        _log.info("space_returner.returned", bytes=pages * before.size)
        return pages

    async def _count(self) -> rows.FreePages | None:
        async with self._database.read() as session:
            return await rows.count(session)
