"""Queued jobs: their order, which of them can start, and their dispatch messages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Subquery, and_, exists, func, or_, select, update
from sqlalchemy.orm import aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.jobs import JobRow, JobRunRow
from app.db.models.snapshots import SnapshotRow
from app.db.repositories.jobs import FINAL, LIVE, TRAINING, may_start_now
from app.db.repositories.pools import is_admitted, is_open
from palestra.contract.names import Schedule
from palestra.contract.states import JobState, SnapshotState

_FOLLOWING: Final = [schedule.value for schedule in Schedule if schedule.follows_training]


@dataclass(frozen=True, slots=True)
class ReadyJob:
    """A job to dispatch."""

    job_id: str
    pool: str
    expected_attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue of a pool, with the GPUs and versions that its free workers support."""

    pool: str
    most_gpus: int
    versions: frozenset[int]


def _select_queued(pools: Collection[str], *conditions: ColumnElement[bool]) -> Subquery:
    """The queued jobs of some pools, each with its `turn`; those of admitted projects alone.

    The order of a pool's queue is priority, then fair share between users, then age. A user's n-th
    job comes after the first n - 1 jobs of every other user; running jobs count. All projects of a
    pool have one queue.
    """
    mine = JobRow.pool.in_(pools)
    held = select(JobRow.pool, JobRow.created_by, func.count().label("jobs")).where(
        mine, JobRow.state.in_(LIVE)
    )
    busy = held.group_by(JobRow.pool, JobRow.created_by).subquery()
    place = func.row_number().over(
        partition_by=(JobRow.pool, JobRow.priority, JobRow.created_by),
        order_by=(JobRow.queued_at, JobRow.created_at, JobRow.id),
    )
    columns = (
        JobRow.id,
        JobRow.pool,
        JobRow.attempt,
        JobRow.priority,
        JobRow.queued_at,
        JobRow.created_at,
        JobRow.rung_at,
    )
    query = select(*columns, (place + func.coalesce(busy.c.jobs, 0)).label("turn"))
    query = query.outerjoin(
        busy, and_(busy.c.pool == JobRow.pool, busy.c.created_by == JobRow.created_by)
    )
    is_queued = JobRow.state == JobState.QUEUED.value
    return query.where(mine, is_queued, is_admitted(), *conditions).subquery()


def _turn(queued: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (
        queued.c.priority.desc(),
        queued.c.turn,
        queued.c.queued_at,
        queued.c.created_at,
        queued.c.id,
    )


async def load_positions(session: Session, pools: Collection[str]) -> dict[str, int]:
    """Returns the place of every queued job of some pools in its pool's queue, from 1."""
    queued = _select_queued(pools)
    place = func.row_number().over(partition_by=queued.c.pool, order_by=_turn(queued))
    return dict((await session.execute(select(queued.c.id, place))).all())


async def list_ready(
    session: Session, queue: Queue, ring_seconds: float, limit: int
) -> Sequence[ReadyJob]:
    """Returns the next jobs of a queue that need a dispatch message, in order.

    Jobs that the queue's free workers do not support are left out.
    """
    fits = (
        JobRow.gpus <= queue.most_gpus,
        JobRow.work_order_version.in_(queue.versions),
        may_start_now(),
        ~_is_idle_evaluation(),
    )
    queued = _select_queued([queue.pool], *fits)
    silent = or_(queued.c.rung_at.is_(None), queued.c.rung_at <= db_now(-ring_seconds))
    query = (
        select(queued.c.id, queued.c.pool, queued.c.attempt)
        .where(silent)
        .order_by(*_turn(queued))
        .limit(limit)
    )
    return [
        ReadyJob(job_id, pool, attempt + 1)
        for job_id, pool, attempt in await session.execute(query)
    ]


async def filter_idle_evaluations(session: Session, job_ids: Collection[str]) -> set[str]:
    """Returns which queued jobs are continuous evaluations with nothing to evaluate yet."""
    return (
        set(
            await session.scalars(
                select(JobRow.id).where(JobRow.id.in_(job_ids), _is_idle_evaluation())
            )
        )
        if job_ids
        else set()
    )


def _is_idle_evaluation() -> ColumnElement[bool]:
    """The condition that a continuous evaluation would occupy a slot without work.

    The slot may be the one that its training waits for.

    Its run has a training job that is queued or paused, none that is live, and no verified snapshot
    that the job has not evaluated.
    """
    mine, theirs, training = aliased(JobRunRow), aliased(JobRunRow), aliased(JobRow)
    same_run = (
        mine.job_id == JobRow.id,
        theirs.run_id == mine.run_id,
        training.id == theirs.job_id,
        training.schedule.in_(TRAINING),
    )
    live = exists().where(*same_run, training.state.in_(LIVE)).correlate(JobRow)
    unfinished = exists().where(*same_run, training.state.not_in(FINAL)).correlate(JobRow)
    seen = (
        exists()
        .where(EvaluationRow.job_id == JobRow.id, EvaluationRow.snapshot_id == SnapshotRow.id)
        .correlate(JobRow, SnapshotRow)
    )
    counts = (SnapshotRow.state == SnapshotState.VERIFIED.value, SnapshotRow.superseded.is_(False))
    new = (
        exists()
        .where(mine.job_id == JobRow.id, SnapshotRow.run_id == mine.run_id, *counts, ~seen)
        .correlate(JobRow)
    )
    return and_(JobRow.schedule.in_(_FOLLOWING), ~live, unfinished, ~new)


async def list_waiting_pools(session: Session) -> Sequence[str]:
    """Returns the names of the pools with queued jobs, without paused ones."""
    query = (
        select(JobRow.pool)
        .where(JobRow.state == JobState.QUEUED.value, may_start_now(), is_open())
        .distinct()
    )
    return (await session.scalars(query.order_by(JobRow.pool))).all()


async def mark_dispatched(session: Session, sent: Collection[ReadyJob]) -> None:
    """Records that messages were sent; a job that changed state meanwhile is left alone."""
    for job in sent:
        same = (
            JobRow.id == job.job_id,
            JobRow.attempt == job.expected_attempt - 1,
            JobRow.state == JobState.QUEUED.value,
        )
        statement = update(JobRow).where(*same).values(rung_at=db_now(), rings=JobRow.rings + 1)
        await session.execute(statement.execution_options(synchronize_session=False))


async def count_by_pool(
    session: Session, project_ids: Collection[str] | None
) -> dict[str, tuple[int, int]]:
    """Returns, per pool, how many jobs of some projects are queued and how many hold a lease.

    `None` counts the jobs of all projects.
    """
    queued = func.count().filter(JobRow.state == JobState.QUEUED.value)
    live = func.count().filter(JobRow.state.in_(LIVE))
    query = (
        select(JobRow.pool, queued, live).where(JobRow.state.not_in(FINAL)).group_by(JobRow.pool)
    )
    if project_ids is not None:
        query = query.where(JobRow.project_id.in_(project_ids))
    return {pool: (waiting, running) for pool, waiting, running in await session.execute(query)}


async def count_outstanding_messages(session: Session, queue: Queue, ring_seconds: float) -> int:
    """Returns how many dispatch messages of a queue may still lead to a claim."""
    young = and_(JobRow.rung_at.is_not(None), JobRow.rung_at > db_now(-ring_seconds))
    mine = (
        JobRow.state == JobState.QUEUED.value,
        JobRow.pool == queue.pool,
    )
    query = select(func.count()).select_from(JobRow).where(*mine, young)
    return (await session.scalar(query)) or 0
