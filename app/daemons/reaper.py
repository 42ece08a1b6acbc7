"""The reaper: ends attempts as lost whose leases were silent for too long.

Silence is measured by the database's clock. It counts only while this reaper runs and a server is
up to receive renewals: the servers' uptime counter stops while the servers are down or frozen, or
while the database cannot be reached. After its own start and after a step of the clock, the reaper
waits for the whole limit again. When more than half of all leases lapse together, the fault is more
likely the server's than the workers': the reaper logs an error and waits for the limit once more.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database
from app.db.repositories import attempts as rows
from app.db.repositories import uptime
from app.domain.uptime import UptimeLog
from app.services.attempts import endings
from app.services.jobs import dispatch_plan

_log = structlog.get_logger("palestra.reaper")

PERIOD: Final = 5.0
MAX_STEP_SECONDS: Final = 5.0
"""Largest difference in seconds between the database's and this process's clock per `tick`."""
_ACTOR: Final = "daemon:reaper"


class Reaper:
    """Ends attempts whose leases were not renewed for too long.

    Args:
        database: Database of the leases.
        reclaim_seconds: Silence after which an attempt is marked as lost.
        monotonic: Clock of this process, in seconds.
    """

    def __init__(
        self,
        database: Database,
        *,
        reclaim_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._reclaim = reclaim_seconds
        self._monotonic = monotonic
        self._uptime = UptimeLog(keep_seconds=2 * reclaim_seconds)
        self._last: tuple[float, datetime] | None = None
        self._mass_lapse_since: datetime | None = None

    async def run(self) -> None:
        """Runs `tick` every few seconds until cancelled."""
        seconds = min(PERIOD, self._reclaim / 4)
        await run_periodically(self.tick, seconds, log=_log, failed="reaper.failed")

    async def tick(self) -> int:
        """Ends lost attempts; returns their number."""
        async with self._database.read() as session:
            leases = await rows.read_leases(session, self._reclaim)
            now = await uptime.read(session)
        self._check_clocks(now.at)
        self._uptime.note(now.at, now.seconds)
        async with self._database.write() as session:
            await dispatch_plan.fail_without_snapshot(session)
        lapsed = [
            attempt_id
            for attempt_id, last_seen in leases.lapsed
            if self._uptime.seconds_since(last_seen) >= self._reclaim
        ]
        if self._is_mass_lapse(len(lapsed), leases.total, now.at):
            return 0
        return sum([await self._expire(attempt_id) for attempt_id in lapsed])

    def _check_clocks(self, database: datetime) -> None:
        """Restarts the measurement of silences after a step of the database's clock."""
        ours = self._monotonic()
        if self._last is not None:
            step = (database - self._last[1]).total_seconds() - (ours - self._last[0])
            if abs(step) > MAX_STEP_SECONDS:
                self._uptime.forget()
                self._mass_lapse_since = None
                _log.info("reaper.watches_anew", why="clock_stepped", seconds=self._reclaim)
        self._last = (ours, database)

    def _is_mass_lapse(self, lapsed: int, total: int, now: datetime) -> bool:
        if lapsed < 2 or 2 * lapsed <= total:
            self._mass_lapse_since = None
            return False
        if self._mass_lapse_since is None:
            self._mass_lapse_since = now
            _log.error(
                "reaper.mass_lapse", lapsed=lapsed, leases=total, waits_seconds=self._reclaim
            )
        return self._uptime.seconds_since(self._mass_lapse_since) < self._reclaim

    async def _expire(self, attempt_id: str) -> bool:
        async with self._database.write() as session:
            lost = await endings.end_as_expired(session, attempt_id, self._reclaim, _ACTOR)
        if lost:
            _log.warning("reaper.gave_up", attempt_id=attempt_id, silent_seconds=self._reclaim)
        return lost
