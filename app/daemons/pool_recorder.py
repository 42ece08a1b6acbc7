"""Records how the slots of each pool are occupied, and which are idle beside waiting jobs.

Every ten seconds the state of each pool is added to the row of its hour, weighted with the time
since the last sample. Time in which no process sampled is not recorded, and reports show it as
unknown.
"""

from typing import Final

import structlog

from app.daemons.periodic import run_periodically
from app.db.engine import Database, Session
from app.db.repositories import assignments, pool_hours
from app.db.repositories.assignments import WorkerSlots
from app.db.repositories.pool_hours import PoolSample
from app.domain.queue.idle_slots import count_idle_beside_waiting

_log = structlog.get_logger("palestra.pool_recorder")

PERIOD: Final = 10.0
KEEP_SECONDS: Final = 400 * 86_400.0
"""Seconds for which the hours of a pool are kept."""


class PoolRecorder:
    """Samples all pools.

    Args:
        database: Database of the rows.
        period: Seconds between two samples.
    """

    def __init__(self, database: Database, period: float = PERIOD) -> None:
        self._database = database
        self._period = period

    async def run(self) -> None:
        """Samples every `period` seconds until it is cancelled."""
        await run_periodically(self.tick, self._period, log=_log, failed="pool_recorder.failed")

    async def tick(self) -> None:
        """Adds a sample of each pool."""
        async with self._database.read() as session:
            samples = await _read_samples(session)
        async with self._database.write() as session:
            for pool, sample in samples.items():
                if await pool_hours.add_sample(session, pool, sample, 2 * self._period):
                    await pool_hours.forget(session, pool, KEEP_SECONDS)


async def _read_samples(session: Session) -> dict[str, PoolSample]:
    workers: dict[str, list[WorkerSlots]] = {
        pool: [] for pool in await pool_hours.list_pools(session)
    }
    for worker in await assignments.list_worker_slots(session, list(workers)):
        workers[worker.pool].append(worker)
    with_free = [pool for pool, found in workers.items() if any(one.free_slots for one in found)]
    waiting = await pool_hours.list_waiting(session, with_free) if with_free else {}
    return {
        pool: PoolSample(
            slots=sum(one.slots for one in found),
            busy=sum(one.slots - one.free_slots for one in found),
            idle_waiting=count_idle_beside_waiting(found, waiting.get(pool, ())),
        )
        for pool, found in workers.items()
    }
