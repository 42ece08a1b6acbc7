"""Stored estimates of the start of jobs."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, exists, func, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.start_estimates import StartEstimateRow
from app.db.models.usage import QueueGroupRow
from app.db.repositories.job_queue import is_queued
from app.db.upsert import insert_or_replace
from app.domain.queue.start_estimates import ComparedStart

_MAX_ROWS: Final = 500
"""Rows of one statement."""


async def load(session: Session, job_ids: Collection[str]) -> Mapping[str, StartEstimateRow]:
    """Returns the estimates of the given waiting jobs, by job ID."""
    if not job_ids:
        return {}
    query = select(StartEstimateRow).where(
        StartEstimateRow.job_id.in_(job_ids), StartEstimateRow.started_at.is_(None)
    )
    return {row.job_id: row for row in await session.scalars(query)}


async def list_pools(session: Session, seconds: float) -> Sequence[str]:
    """Returns the pools with queued jobs or open estimates, without those estimated just before.

    Args:
        session: A session.
        seconds: A pool with an estimate that was made within so many seconds is left out.
    """
    waiting = select(QueueGroupRow.pool)
    is_open = StartEstimateRow.started_at.is_(None)
    pools = (
        await session.scalars(waiting.union(select(StartEstimateRow.pool).where(is_open)))
    ).all()
    recent = select(StartEstimateRow.pool).where(
        is_open, StartEstimateRow.made_at > db_now(-seconds)
    )
    return sorted(set(pools) - set(await session.scalars(recent)))


async def list_open(session: Session, pool: str) -> Mapping[str, StartEstimateRow]:
    """Returns the estimates of the jobs of a pool whose start is not stored yet, by job ID."""
    query = select(StartEstimateRow).where(
        StartEstimateRow.pool == pool, StartEstimateRow.started_at.is_(None)
    )
    return {row.job_id: row for row in await session.scalars(query)}


async def store(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts estimates, or replaces those of the same jobs.

    Args:
        session: A writing session.
        rows: Values of all columns.
    """
    for first in range(0, len(rows), _MAX_ROWS):
        some = list(rows[first : first + _MAX_ROWS])
        await session.execute(insert_or_replace(session, StartEstimateRow, some))


async def note_starts(session: Session, pool: str) -> None:
    """Stores when the jobs of a pool started; drops the estimates of jobs that will never start."""
    started = (
        select(func.max(AttemptRow.started_at))
        .where(
            AttemptRow.job_id == StartEstimateRow.job_id,
            AttemptRow.started_at >= StartEstimateRow.first_made_at,
        )
        .scalar_subquery()
    )
    is_open = (StartEstimateRow.pool == pool, StartEstimateRow.started_at.is_(None))
    await session.execute(
        update(StartEstimateRow)
        .where(*is_open, started.is_not(None))
        .values(started_at=started)
        .execution_options(synchronize_session=False)
    )
    # What began without an estimate, was paused or ended while it waited has nothing to compare.
    waits = exists().where(JobRow.id == StartEstimateRow.job_id, is_queued())
    await session.execute(
        delete(StartEstimateRow)
        .where(*is_open, ~waits)
        .execution_options(synchronize_session=False)
    )


async def forget(session: Session, seconds: float) -> int:
    """Deletes the estimates of jobs that started earlier; returns their number."""
    found: Any = await session.execute(
        delete(StartEstimateRow).where(StartEstimateRow.started_at < db_now(-seconds))
    )
    return int(found.rowcount)


async def list_compared(session: Session, pool: str, most: int) -> Sequence[ComparedStart]:
    """Returns the latest starts of a pool's jobs with their first estimates, at most `most`."""
    columns = (
        StartEstimateRow.first_made_at,
        StartEstimateRow.first_earliest,
        StartEstimateRow.first_median,
        StartEstimateRow.first_latest,
        StartEstimateRow.started_at,
    )
    query = (
        select(*columns)
        .where(
            StartEstimateRow.pool == pool,
            StartEstimateRow.started_at.is_not(None),
            StartEstimateRow.first_median.is_not(None),
        )
        .order_by(StartEstimateRow.started_at.desc())
        .limit(most)
    )
    return [ComparedStart(*map(_known, row)) for row in await session.execute(query)]


def _known(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment
