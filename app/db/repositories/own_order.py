"""Changes of queued jobs, and their order among the jobs of the same person."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, tuple_, update

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import job_queue

_LATER: Final = (JobRow.own_place, JobRow.seed_index, JobRow.queued_at, JobRow.id)
"""What is compared of a person's jobs of equal priority."""


async def change(session: Session, job: JobRow, values: Mapping[str, Any]) -> bool:
    """Writes columns of a job that is queued and not assigned; refreshes `job`.

    Returns:
        Whether the job was still queued and not assigned.
    """
    statement = (
        update(JobRow)
        .where(JobRow.id == job.id, job_queue.is_unassigned())
        .values(**values)
        .returning(JobRow.id)
        .execution_options(synchronize_session=False)
    )
    found = (await session.execute(statement)).first() is not None
    await session.refresh(job)
    return found


async def lock_before(session: Session, job: JobRow, other: JobRow) -> None:
    """Locks two queued jobs of a person, and the jobs of the second one's priority before it.

    Locks in the order in which the jobs start, as the dispatcher does, so that no deadlock occurs.
    Refreshes both jobs.
    """
    mine = or_(JobRow.id.in_((job.id, other.id)), _is_before(other))
    query = select(JobRow.id).where(*_is_in_group(job), mine)
    await session.execute(query.order_by(JobRow.priority.desc(), *_LATER).with_for_update())
    await session.refresh(job)
    await session.refresh(other)


async def find_place_before(session: Session, job: JobRow, other: JobRow) -> Mapping[str, Any]:
    """Shifts the jobs before `other`; returns the columns that place `job` directly before `other`.

    Both jobs are in one group. The shifted jobs keep their order.
    """
    await session.execute(
        update(JobRow)
        .where(*_is_in_group(other), JobRow.id != job.id, _is_before(other))
        .values(own_place=JobRow.own_place - 2)
        .execution_options(synchronize_session=False)
    )
    return {"priority": other.priority, "own_place": other.own_place - 1}


async def find_last_place(session: Session, job: JobRow) -> Mapping[str, Any]:
    """Returns the columns with which a job starts after all others of its group."""
    others = select(JobRow.priority, JobRow.own_place).where(
        *_is_in_group(job), JobRow.id != job.id
    )
    last = others.order_by(JobRow.priority, JobRow.own_place.desc()).limit(1)
    row = (await session.execute(last)).first()
    return {} if row is None else {"priority": row.priority, "own_place": row.own_place + 1}


def _is_in_group(job: JobRow) -> tuple[ColumnElement[bool], ...]:
    return (
        JobRow.pool == job.pool,
        JobRow.priority_class == job.priority_class,
        JobRow.project_id == job.project_id,
        JobRow.created_by == job.created_by,
        job_queue.is_queued(),
    )


def _is_before(job: JobRow) -> ColumnElement[bool]:
    """The condition that a job has the priority of another job of its group and starts earlier."""
    values = (job.own_place, job.seed_index, job.queued_at, job.id)
    bounds = [literal(value, column.type) for value, column in zip(values, _LATER, strict=True)]
    return and_(JobRow.priority == job.priority, tuple_(*_LATER) < tuple_(*bounds))


async def is_assigned(session: Session, job: JobRow) -> bool:
    """Returns whether a worker was asked to start a queued job."""
    query = select(func.count()).where(JobRow.id == job.id, job_queue.is_assigned())
    return bool(await session.scalar(query))
