"""The summariser: keeps the summaries by which lists of runs are sorted and filtered."""

import time
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import events as event_rows
from app.db.repositories import stale_summaries as stale_rows
from app.db.repositories import summaries as rows
from app.services.curves import summaries, threshold_comparison

_log = structlog.get_logger("palestra.summariser")

PERIOD: Final = 2.0
EVENTS: Final = 20_000
"""Most events of one round."""
_STALE: Final = 100
"""Runs that are summarised anew at once beside those with new records."""
_UNCOMPARED: Final = 200
"""Runs that are compared with new thresholds at once."""
_OLD_SECONDS: Final = 1.0
"""Seconds of a round for runs without new records: the server has half of its time for others."""


class Summariser:
    """Summarises the runs about which there are new events.

    The last event that was considered is stored, so no run is left out after a restart. What a
    round writes can be repeated without effect.

    Args:
        database: Database of the curves.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        """Summarises every two seconds until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="summariser.failed")

    async def tick(self) -> int:
        """Summarises the runs with new records, and some that wait to be summarised anew.

        Returns:
            The number of runs that were written.
        """
        async with self._database.read() as session:
            after = await rows.read_progress(session)
            oldest, newest = await event_rows.read_bounds(session)
            last = min(newest, max(after, oldest - 1) + EVENTS)
            changes = await rows.list_changes(session, after, last)
        if oldest > after + 1:
            await self._mark_all(oldest - 1)
        run_ids = {change.run_id for change in changes}
        evaluated = {change.run_id for change in changes if change.type == "evaluation"}
        written = await summaries.summarise(self._database, run_ids, evaluated)
        if last > after:
            async with self._database.write() as session:
                await rows.set_progress(session, last)
        return written + await self._bring_up_to_date()

    async def _bring_up_to_date(self) -> int:
        """Summarises some runs anew, and compares some with thresholds that were declared since."""
        written = 0
        end = time.monotonic() + _OLD_SECONDS
        while True:
            async with self._database.read() as session:
                stale = await stale_rows.list_stale(session, _STALE)
                uncompared = await stale_rows.list_uncompared(session, _UNCOMPARED)
            done = await summaries.summarise(self._database, stale)
            done += await threshold_comparison.compare(self._database, uncompared)
            written += done
            if not done or time.monotonic() >= end:
                return written

    async def _mark_all(self, event_id: int) -> None:
        """Lets all runs be summarised anew, since events were deleted before they were read."""
        async with self._database.write() as session:
            await stale_rows.mark_all(session)
            await rows.set_progress(session, event_id)
