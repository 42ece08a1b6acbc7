"""The start estimator: estimates when the waiting jobs of each pool start, and stores it.

It estimates the first jobs of each queue every few seconds, and at most a tenth of the time: after
a round that took long it pauses ten times as long. Of several processes, one estimates a pool that
another one estimated just before only after the period.
"""

import asyncio
import math
import time
from typing import Final

import structlog

from app.db.engine import Database
from app.db.repositories import start_estimates as rows
from app.services.queue import start_forecasts
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from app.services.queue.queue_facts import MAX_PLACES

_log = structlog.get_logger("palestra.start_estimator")

PERIOD: Final = 5.0
KEEP_SECONDS: Final = 30 * 86_400.0
"""Seconds for which an estimate is kept after the start of its job."""
_FORGET_SECONDS: Final = 3_600.0
_PART_OF_TIME: Final = 0.1


class StartEstimator:
    """Estimates the starts in all pools.

    Args:
        database: Database of the jobs.
        period: Shortest pause between two rounds, in seconds.
    """

    def __init__(self, database: Database, period: float = PERIOD) -> None:
        self._database = database
        self._period = period
        self._equipped = EquippedWorkers()
        self._forgot_at = -math.inf

    async def run(self) -> None:
        """Estimates every few seconds until it is cancelled."""
        while True:
            began = time.monotonic()
            try:
                await self.tick()
            # A failure must not end the daemon: the next round reads the database anew.
            except Exception:  # noqa: BLE001
                _log.exception("start_estimator.failed")
            took = time.monotonic() - began
            await asyncio.sleep(max(self._period, took / _PART_OF_TIME))

    async def tick(self) -> int:
        """Estimates each pool with jobs that wait; returns the number of estimates written."""
        async with self._database.read() as session:
            pools = await rows.list_pools(session, 0.8 * self._period)
        written = sum([await self._estimate(pool) for pool in pools])
        if time.monotonic() - self._forgot_at > _FORGET_SECONDS:
            self._forgot_at = time.monotonic()
            async with self._database.write() as session:
                await rows.forget(session, KEEP_SECONDS)
        return written

    async def _estimate(self, pool: str) -> int:
        async with self._database.read() as session:
            queue = PoolQueue(session, pool, self._equipped)
            state, order = await queue.read_first_jobs(MAX_PLACES)
            simulated = await start_forecasts.load_pool(session, pool, state)
        made = await start_forecasts.forecast(simulated, [job.id for job in order])
        async with self._database.write() as session:
            return await start_forecasts.store(session, pool, made)
