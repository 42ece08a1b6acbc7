"""The judge: keeps the findings about trainings, as they go, for lists and pages of runs."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import findings as rows
from app.db.tolerance import do_together
from app.services.curves import health

_log = structlog.get_logger("palestra.judge")

PERIOD: Final = 5.0
PAUSE: Final = 30.0
"""Least seconds between two judgements of a run."""
BUDGET: Final = 0.5
"""Seconds of judging after which a round ends."""
RUNS_PER_TRANSACTION: Final = 8
"""Runs that are judged together, in one transaction that reads and one that writes."""
_CONSIDERED: Final = 500
"""Most runs that a round looks at."""


class Judge:
    """Judges the runs whose summaries changed.

    The version that was judged is stored, so no run is left out after a restart.

    Args:
        database: Database of the curves.
        clock: Returns seconds.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._judged_at: dict[str, float] = {}

    async def run(self) -> None:
        """Judges every five seconds until it is cancelled."""
        await run_periodically(self.tick, PERIOD, log=_log, failed="judge.failed")

    async def tick(self) -> int:
        """Judges runs, each at most once in 30 s, for about half a second.

        Returns:
            The number of runs that were judged.
        """
        began, count = self._clock(), 0
        self._judged_at = {
            run_id: at for run_id, at in self._judged_at.items() if began - at < PAUSE
        }
        async with self._database.read() as session:
            waiting = await rows.list_unjudged(session, _CONSIDERED + len(self._judged_at))
        due = [run_id for run_id in waiting if run_id not in self._judged_at]
        for first in range(0, len(due), RUNS_PER_TRANSACTION):
            if self._clock() - began > BUDGET:
                break
            some = due[first : first + RUNS_PER_TRANSACTION]
            # Runs that fail are tried again after the pause, and do not keep others from judgement.
            self._judged_at |= dict.fromkeys(some, self._clock())
            count += await do_together(self._judge, some, log=_log, failed="judge.run_failed")
        return count

    async def _judge(self, run_ids: Sequence[str]) -> int:
        """Judges runs in one transaction; returns how many were judged."""
        await health.judge_and_keep(self._database, run_ids)
        return len(run_ids)
