"""Refuses batches while too many batches wait for the compactor, before reads become slow.

Queries decode the batches of a run that are not in blocks yet, so their number is limited, for each
run and for all runs together. The sender keeps its records and tries again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

import structlog

from app.db.engine import Database
from app.db.repositories import compaction as rows
from app.domain.errors import TooManyRequestsError

_log = structlog.get_logger("palestra.ingest")

MAX_BATCHES_OF_RUN: Final = 4_096
MAX_BATCHES: Final = 32_768
RETRY_SECONDS: Final = 5
"""Seconds after which a refused sender tries again; the compactor runs each second."""
_COUNT_SECONDS: Final = 1.0


class TailLimit:
    """Counts the batches that are not in blocks yet.

    They are counted in the database at most once a second, and between two counts those of this
    process are added. A batch that is committed during a count may be counted twice until the next.

    Args:
        database: Database of the curves.
        of_run: Batches of one run from which those of its attempts are refused.
        of_all: Batches of all runs from which all are refused.
    """

    def __init__(
        self, database: Database, *, of_run: int = MAX_BATCHES_OF_RUN, of_all: int = MAX_BATCHES
    ) -> None:
        self._database = database
        self._of_run = of_run
        self._of_all = of_all
        self._batches: Counter[str] = Counter()
        self._total = 0
        self._counted_at = -_COUNT_SECONDS
        self._wanted = asyncio.Event()
        self._refuses = False

    def check(self, run_ids: Collection[str]) -> None:
        """Refuses a batch with records of some runs while too many others wait.

        Raises:
            TooManyRequestsError: `curves_behind`.
        """
        if time.monotonic() - self._counted_at >= _COUNT_SECONDS:
            self._wanted.set()
        if self._total < self._of_all and all(
            self._batches[run_id] < self._of_run for run_id in run_ids
        ):
            return
        raise TooManyRequestsError(
            "curves_behind",
            "Too many batches of curves wait to be compacted. Send the batch again later. If this "
            "lasts, see whether the daemons run (`palestra daemons`, or inside the server).",
            retry_after=RETRY_SECONDS,
        )

    def add(self, run_ids: Iterable[str]) -> None:
        """Adds a committed batch with records of some runs."""
        for run_id in run_ids:
            self._batches[run_id] += 1
            self._total += 1

    async def run(self) -> None:
        """Counts in the database, while batches are checked, until it is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._count()
            # Batches are refused or taken by the count before; the next check counts again.
            except Exception as error:  # noqa: BLE001
                _log.warning("ingest.count_failed", error=type(error).__name__)

    async def _count(self) -> None:
        self._counted_at = time.monotonic()
        async with self._database.read() as session:
            self._batches = Counter(await rows.count_tails_by_run(session))
        self._total = self._batches.total()
        refuses = self._total >= self._of_all or any(
            one >= self._of_run for one in self._batches.values()
        )
        if refuses != self._refuses:
            _log.warning("ingest.curves_behind" if refuses else "ingest.curves_caught_up")
            self._refuses = refuses
