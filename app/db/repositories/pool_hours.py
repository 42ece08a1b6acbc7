"""Rows of how the slots of pools were occupied, by hour."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select

from app.db.clock import db_now
from app.db.clock import now as database_now
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow
from app.db.models.usage import PoolHourRow
from app.db.repositories import dependencies, job_queue
from app.db.repositories.jobs import may_start_now
from app.db.repositories.pools import is_admitted
from app.db.upsert import insert_new
from app.domain.queue.idle_slots import WaitingJobs
from app.domain.usage_periods import UsagePeriod, divide, measure

HOUR_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSample:
    """Occupancy of the slots of a pool at one time."""

    slots: int
    busy: int
    idle_waiting: int


async def list_waiting(session: Session, pools: Collection[str]) -> dict[str, list[WaitingJobs]]:
    """Returns the queued jobs of the given pools that could start, grouped by their needs.

    Jobs of paused pools count; jobs that are assigned, delayed, wait for other jobs, or are of a
    project that the pool does not admit, do not.
    """
    needs = (JobRow.pool, JobRow.gpus, JobRow.work_order_version)
    query = (
        select(*needs, func.count())
        .where(
            JobRow.pool.in_(pools),
            job_queue.is_unassigned(),
            dependencies.has_none_open(),
            may_start_now(),
            ~job_queue.is_idle_evaluation(),
            is_admitted(),
        )
        .group_by(*needs)
    )
    found: dict[str, list[WaitingJobs]] = {}
    for pool, gpus, version, jobs in await session.execute(query):
        found.setdefault(pool, []).append(WaitingJobs(gpus=gpus, version=version, jobs=jobs))
    return found


async def add_sample(session: Session, pool: str, sample: PoolSample, longest: float) -> bool:
    """Adds a sample for the time since the last one; returns whether an hour began.

    Several processes may sample one pool: each adds only the time since the last sample. Of a gap
    longer than `longest` seconds, in which no server sampled, only `longest` seconds count.
    """
    now = await database_now(session)
    hour = now.replace(minute=0, second=0, microsecond=0)
    row = {"pool": pool, "hour": hour}
    statement = insert_new(session, PoolHourRow, [row]).returning(PoolHourRow.pool)
    begins = (await session.execute(statement)).first() is not None
    query = select(PoolHourRow).where(PoolHourRow.pool == pool).order_by(PoolHourRow.hour.desc())
    query = query.limit(2).with_for_update().execution_options(populate_existing=True)
    rows = {row.hour: row for row in await session.scalars(query)}
    if hour not in rows:
        return begins  # The clock was set back by hours.
    sampled = [row.sampled_at for row in rows.values() if row.sampled_at is not None]
    # Read anew: another process may have held the rows for a while.
    now = await database_now(session)
    start = max(max(sampled, default=now), now - timedelta(seconds=longest))
    if start < now:
        period = UsagePeriod(since=start, until=now, bucket_seconds=HOUR_SECONDS)
        for index, seconds in divide(measure(period, start, now, 1), HOUR_SECONDS):
            found = rows.get(period.origin + timedelta(seconds=index * HOUR_SECONDS))
            if found is not None:
                _add(found, sample, seconds)
    rows[hour].sampled_at = max([*sampled, now])
    await session.flush()
    return begins


def _add(row: PoolHourRow, sample: PoolSample, seconds: float) -> None:
    row.recorded_seconds += seconds
    row.slot_seconds += seconds * sample.slots
    row.busy_seconds += seconds * sample.busy
    row.idle_waiting_seconds += seconds * sample.idle_waiting


async def list_pools(session: Session) -> Sequence[str]:
    """Returns the names of all pools."""
    return (await session.scalars(select(PoolRow.name).order_by(PoolRow.name))).all()


async def list_hours(
    session: Session, pools: Collection[str], since: datetime, until: datetime
) -> Sequence[PoolHourRow]:
    """Returns the hours of the given pools that begin within a period, in order."""
    query = select(PoolHourRow).where(
        PoolHourRow.pool.in_(pools), PoolHourRow.hour >= since, PoolHourRow.hour < until
    )
    return (await session.scalars(query.order_by(PoolHourRow.pool, PoolHourRow.hour))).all()


async def forget(session: Session, pool: str, seconds: float) -> None:
    """Deletes the hours of a pool that are older than `seconds`."""
    old = (PoolHourRow.pool == pool, PoolHourRow.hour < db_now(-seconds))
    statement = delete(PoolHourRow).where(*old)
    await session.execute(statement.execution_options(synchronize_session=False))
