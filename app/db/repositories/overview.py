"""A person's own runs and jobs, and the numbers of jobs in projects."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, UnaryExpression, func, select

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import JobRow
from palestra.contract.states import FINAL_JOB_STATES, JobState, RunState


async def count_jobs(
    session: Session, project_ids: Collection[str], user_id: str
) -> Mapping[tuple[str, JobState], tuple[int, int]]:
    """Returns, by project and state, how many jobs have not ended: all, and the person's."""
    mine = func.count().filter(JobRow.created_by == user_id)
    unfinished = [state for state in JobState if state not in FINAL_JOB_STATES]
    query = (
        select(JobRow.project_id, JobRow.state, func.count(), mine)
        .where(JobRow.project_id.in_(project_ids), JobRow.state.in_(unfinished))
        .group_by(JobRow.project_id, JobRow.state)
    )
    rows = await session.execute(query)
    return {(project_id, state): (int(every), int(own)) for project_id, state, every, own in rows}


async def list_running(
    session: Session, project_ids: Collection[str], user_id: str, limit: int
) -> tuple[Sequence[RunRow], int]:
    """Returns a person's running runs, the newest first, and how many there are."""
    wanted = _select_runs(project_ids, user_id, RunRow.state == RunState.RUNNING)
    return await _list(session, wanted, RunRow.started_at.desc(), limit)


async def list_failed(
    session: Session, project_ids: Collection[str], user_id: str, since: datetime, limit: int
) -> tuple[Sequence[RunRow], int]:
    """Returns a person's runs that failed since a time, the latest failure first, and how many.

    Runs of archived experiments are left out.
    """
    failed = (RunRow.state == RunState.FAILED, RunRow.finished_at >= since)
    wanted = _select_runs(project_ids, user_id, *failed).join(
        ExperimentRow,
        (ExperimentRow.project_id == RunRow.project_id)
        & (ExperimentRow.id == RunRow.experiment_id),
    )
    wanted = wanted.where(ExperimentRow.archived_at.is_(None))
    return await _list(session, wanted, RunRow.finished_at.desc(), limit)


async def list_pools_of_waiting(
    session: Session, project_ids: Collection[str], user_id: str
) -> Sequence[str]:
    """Returns the names of the pools in which a person's jobs are queued."""
    query = select(JobRow.pool).where(*_is_own_queued(project_ids, user_id)).distinct()
    return (await session.scalars(query.order_by(JobRow.pool))).all()


async def find_oldest_queued(
    session: Session, project_ids: Collection[str], user_id: str
) -> JobRow | None:
    """Returns the job of a person that has been queued longest."""
    query = select(JobRow).where(*_is_own_queued(project_ids, user_id))
    return await session.scalar(query.order_by(JobRow.queued_at, JobRow.id).limit(1))


def _is_own_queued(project_ids: Collection[str], user_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        JobRow.created_by == user_id,
        JobRow.state == JobState.QUEUED,
        JobRow.project_id.in_(project_ids),
    )


def _select_runs(
    project_ids: Collection[str], user_id: str, *conditions: ColumnElement[bool]
) -> Select[RunRow]:
    return select(RunRow).where(
        RunRow.created_by == user_id, RunRow.project_id.in_(project_ids), *conditions
    )


async def _list(
    session: Session, wanted: Select[RunRow], order: UnaryExpression[datetime | None], limit: int
) -> tuple[Sequence[RunRow], int]:
    found = (await session.scalars(wanted.order_by(order, RunRow.id).limit(limit))).all()
    if len(found) < limit:
        return found, len(found)
    count = select(func.count()).select_from(wanted.order_by(None).subquery())
    return found, int(await session.scalar(count) or 0)
