"""Conditions on queued and assigned jobs, and their numbers by pool."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import ColumnElement, and_, exists, func, literal_column, or_, select
from sqlalchemy.orm import aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.jobs import JobRow, JobRunRow
from app.db.models.snapshots import SnapshotRow
from app.db.repositories.jobs import TRAINING
from palestra.contract.names import Schedule
from palestra.contract.states import FINAL_JOB_STATES, LIVE_JOB_STATES, JobState, SnapshotState

_FOLLOWING: Final = [schedule for schedule in Schedule if schedule.follows_training]


async def filter_idle_evaluations(session: Session, job_ids: Collection[str]) -> set[str]:
    """Returns which queued jobs are continuous evaluations with nothing to evaluate yet."""
    return (
        set(
            await session.scalars(
                select(JobRow.id).where(JobRow.id.in_(job_ids), is_idle_evaluation())
            )
        )
        if job_ids
        else set()
    )


def is_idle_evaluation() -> ColumnElement[bool]:
    """The condition that a job is a continuous evaluation with nothing to evaluate yet.

    Such a job would occupy a slot that its training may be waiting for.

    Its run has a training job that is queued or paused, none that is live, and no verified snapshot
    that the job has not evaluated.
    """
    mine, theirs, training = aliased(JobRunRow), aliased(JobRunRow), aliased(JobRow)
    # Explicit joins: SQLAlchemy sees a cartesian product in implicit ones within a LATERAL.
    trainings = (
        select(training.id)
        .select_from(mine)
        .join(theirs, theirs.run_id == mine.run_id)
        .join(training, training.id == theirs.job_id)
        .where(mine.job_id == JobRow.id, training.schedule.in_(TRAINING))
    )
    live = trainings.where(training.state.in_(LIVE_JOB_STATES)).correlate(JobRow).exists()
    unfinished = trainings.where(training.state.not_in(FINAL_JOB_STATES)).correlate(JobRow).exists()
    seen = (
        exists()
        .where(EvaluationRow.job_id == JobRow.id, EvaluationRow.snapshot_id == SnapshotRow.id)
        .correlate(JobRow, SnapshotRow)
    )
    new = (
        select(SnapshotRow.id)
        .select_from(mine)
        .join(SnapshotRow, SnapshotRow.run_id == mine.run_id)
        .where(
            mine.job_id == JobRow.id,
            SnapshotRow.state == SnapshotState.VERIFIED,
            SnapshotRow.superseded.is_(False),
            ~seen,
        )
        .correlate(JobRow)
        .exists()
    )
    return and_(JobRow.schedule.in_(_FOLLOWING), ~live, unfinished, ~new)


async def count_by_pool(
    session: Session, project_ids: Collection[str] | None
) -> dict[str, tuple[int, int]]:
    """Returns, per pool, how many jobs of the given projects are queued and how many hold a lease.

    `None` counts the jobs of all projects.
    """
    queued = func.count().filter(JobRow.state == JobState.QUEUED)
    live = func.count().filter(JobRow.state.in_(LIVE_JOB_STATES))
    query = (
        select(JobRow.pool, queued, live)
        .where(JobRow.state.not_in(FINAL_JOB_STATES))
        .group_by(JobRow.pool)
    )
    if project_ids is not None:
        query = query.where(JobRow.project_id.in_(project_ids))
    return {pool: (waiting, running) for pool, waiting, running in await session.execute(query)}


def is_queued() -> ColumnElement[bool]:
    """The condition that a job is queued.

    The state is a literal: a partial index serves no statement whose state is a parameter.
    """
    return JobRow.state == literal_column(f"'{JobState.QUEUED}'")


def is_assigned() -> ColumnElement[bool]:
    """The condition that a job is queued and a worker was asked to start it."""
    return and_(is_queued(), JobRow.assigned_until > db_now())


def is_unassigned() -> ColumnElement[bool]:
    """The condition that a job is queued and no worker is asked to start it."""
    is_free = or_(JobRow.assigned_until.is_(None), JobRow.assigned_until <= db_now())
    return and_(is_queued(), is_free)


def holds_devices() -> ColumnElement[bool]:
    """The condition that a job is assigned or live."""
    return or_(
        JobRow.state.in_(LIVE_JOB_STATES),
        is_assigned(),
    )
