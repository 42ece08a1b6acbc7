"""The reaper: gives up attempts that were silent for too long, by the database's clock, and never without having watched for as long.

Silence counts only while this reaper watched: after its own start, an outage of the database, a pause of this process or a step of the
clock it waits for the whole limit again. When more than half of all leases lapse together the fault is more likely ours than theirs: it
raises an alarm and waits for the limit once more.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from app.db.clock import now as database_now
from app.db.engine import Database
from app.db.repositories import attempts as rows
from app.db.repositories.attempts import Leases
from app.services import dispatch, endings

_log = structlog.get_logger("palestra.reaper")

PERIOD: Final = 5.0
LONGEST_GAP: Final = 30.0
"""Seconds between two looks after which the reaper counts as having been away."""
LARGEST_STEP: Final = 5.0
"""Seconds by which the database's clock may differ from ours between two looks."""
_ACTOR: Final = "daemon:reaper"


class Reaper:
    """Watches leases.

    Args:
        database: Where the leases are.
        reclaim_seconds: Silence after which an attempt is given up.
        monotonic: Clock of this process, in seconds.
    """

    def __init__(self, database: Database, *, reclaim_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._reclaim = reclaim_seconds
        self._monotonic = monotonic
        self._watching_since = monotonic()
        self._last: tuple[float, datetime] | None = None
        self._braking_since: float | None = None

    async def run(self) -> None:
        """Looks every few seconds until it is cancelled."""
        while True:
            try:
                await self.tick()
            except Exception:  # noqa: BLE001 - a daemon outlives every failure; the next look starts afresh
                self.start_over("database_failed")
                _log.exception("reaper.failed")
            await asyncio.sleep(PERIOD)

    async def tick(self) -> int:
        """Gives up what is lost; returns how many attempts."""
        async with self._database.read() as session:
            leases = await rows.leases(session, self._reclaim)
            self._check_clocks(await database_now(session))
        async with self._database.write() as session:
            await dispatch.fail_hopeless(session)
        if self._monotonic() - self._watching_since < self._reclaim or self._must_brake(leases):
            return 0
        return sum([await self._expire(attempt_id) for attempt_id in leases.lapsed])

    def start_over(self, why: str) -> None:
        """Forgets how long it watched."""
        self._watching_since = self._monotonic()
        self._last = None
        self._braking_since = None
        _log.info("reaper.watches_anew", why=why, seconds=self._reclaim)

    def _check_clocks(self, database: datetime) -> None:
        ours = self._monotonic()
        if self._last is not None:
            passed = ours - self._last[0]
            if passed > LONGEST_GAP:
                self.start_over("was_away")
            elif abs((database - self._last[1]).total_seconds() - passed) > LARGEST_STEP:
                self.start_over("clock_stepped")
        self._last = (ours, database)

    def _must_brake(self, leases: Leases) -> bool:
        if len(leases.lapsed) < 2 or 2 * len(leases.lapsed) <= leases.total:
            self._braking_since = None
            return False
        if self._braking_since is None:
            self._braking_since = self._monotonic()
            _log.error("reaper.brake", lapsed=len(leases.lapsed), leases=leases.total, waits_seconds=self._reclaim)
        return self._monotonic() - self._braking_since < self._reclaim

    async def _expire(self, attempt_id: str) -> bool:
        async with self._database.write() as session:
            lost = await endings.as_expired(session, attempt_id, self._reclaim, _ACTOR)
        if lost:
            _log.warning("reaper.gave_up", attempt_id=attempt_id, silent_seconds=self._reclaim)
        return lost
