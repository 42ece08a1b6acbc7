"""The curve compactor: moves new points and epochs into blocks, and finishes ended attempts."""

from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import compaction as rows
from app.db.tolerance import tolerate
from app.services.telemetry import compaction, epoch_compaction

_log = structlog.get_logger("palestra.curve_compactor")

PERIOD: Final = 1.0
BATCHES: Final = 64
"""Batches of a run that are moved at once."""
SECONDS: Final = 15.0
"""Seconds after which fewer batches are moved: those of a training then, which sends four batches a
second, are about as many."""
_ENDED_PERIOD: Final = 10
"""Rounds after which ended attempts and epochs are looked for."""
_ATTEMPTS_PER_ROUND: Final = 20


class CurveCompactor:
    """Compacts the curves of all runs.

    Args:
        database: Database of the curves.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._round = 0

    async def run(self) -> None:
        """Compacts every second until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="curve_compactor.failed")

    async def tick(self, *, batches: int = BATCHES, seconds: float = SECONDS) -> int:
        """Compacts the runs with long or old tails; returns the number of batches moved."""
        async with self._database.read() as session:
            tails = await rows.list_tails(session, batches, seconds)
        tails.sort(key=lambda one: -one.batches)
        lengths = {tail.run_id: tail.batches for tail in tails}
        moved = await compaction.compact_tails(self._database, lengths)
        self._round += 1
        if self._round % _ENDED_PERIOD == 1:
            await self._finish()
        return moved

    async def _finish(self) -> None:
        async with self._database.read() as session:
            ended = await rows.list_ended_attempts(session, _ATTEMPTS_PER_ROUND)
        for attempt_id in ended:
            with tolerate(_log, "curve_compactor.attempt_failed", attempt_id=attempt_id):
                await compaction.finish_attempt(self._database, attempt_id)
        await epoch_compaction.compact_epochs(self._database)
