"""Rows of jobs. Only `app.services.jobs.job_state` calls `move`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Subquery, and_, exists, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.jobs import AttemptRow, JobRow, JobRunRow
from app.db.models.snapshots import SnapshotRow
from app.db.repositories.chunked_in import cut
from app.db.repositories.keyset_pages import paged
from app.domain.paging import Keyset
from app.domain.retry import History
from palestra.contract.names import Schedule
from palestra.contract.states import FINAL_JOB_STATES, LIVE_JOB_STATES, JobState, SnapshotState

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": JobRow.created_at,
    "priority": JobRow.priority,
}
_FINAL: Final = [state.value for state in FINAL_JOB_STATES]
_LIVE: Final = [state.value for state in LIVE_JOB_STATES]
_TRAINING: Final = [schedule.value for schedule in Schedule if schedule.writes_training_state]
_FOLLOWING: Final = [schedule.value for schedule in Schedule if schedule.follows_training]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list; `None` takes all."""

    experiment_id: str | None = None
    run_id: str | None = None
    state: JobState | None = None
    schedule: Schedule | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class ReadyJob:
    """A job to ring for."""

    job_id: str
    pool: str
    expected_attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue of a pool, and what its workers can take now."""

    project_id: str
    pool: str
    most_gpus: int
    versions: frozenset[int]


async def insert(
    session: Session, rows: Collection[dict[str, Any]], runs: Mapping[str, Sequence[str]]
) -> Sequence[JobRow]:
    """Adds jobs and, per job, the runs that it works on."""
    jobs = [JobRow(**row) for row in rows]
    session.add_all(jobs)
    await session.flush()
    session.add_all(
        JobRunRow(job_id=job_id, run_id=run_id, position=place)
        for job_id, run_ids in runs.items()
        for place, run_id in enumerate(run_ids)
    )
    await session.flush()
    return jobs


async def get(
    session: Session, project_id: str, job_id: str, *, lock: bool = False
) -> JobRow | None:
    """Returns a job of the project.

    Locked against other changes until the transaction ends where asked.
    """
    query = (
        select(JobRow)
        .where(JobRow.project_id == project_id, JobRow.id == job_id)
        .execution_options(populate_existing=True)
    )
    return await session.scalar(query.with_for_update() if lock else query)


async def by_id(session: Session, job_id: str, *, lock: bool = False) -> JobRow | None:
    """Returns a job of any project."""
    query = select(JobRow).where(JobRow.id == job_id).execution_options(populate_existing=True)
    return await session.scalar(query.with_for_update() if lock else query)


async def by_ids(session: Session, job_ids: Collection[str]) -> Sequence[JobRow]:
    """Returns jobs by id."""
    found: list[JobRow] = []
    for some in cut(job_ids):
        found += await session.scalars(select(JobRow).where(JobRow.id.in_(some)))
    return found


async def move(
    session: Session,
    job: JobRow,
    to: JobState,
    values: Mapping[str, Any],
    *conditions: ColumnElement[bool],
) -> bool:
    """Writes a state if the job is still in the state and at the attempt that `job` shows.

    Returns whether it was.

    One statement checks and writes. `job` is brought up to date.
    """
    same = (JobRow.id == job.id, JobRow.state == job.state, JobRow.attempt == job.attempt)
    statement = (
        update(JobRow)
        .where(*same, *conditions)
        .values(state=to.value, **values)
        .returning(JobRow.id)
    )
    statement = statement.execution_options(synchronize_session=False)
    if (await session.execute(statement)).first() is None:
        return False
    await session.refresh(job)
    return True


def may_start_now() -> ColumnElement[bool]:
    """The condition that a queued job's delay is over."""
    return or_(JobRow.not_before.is_(None), JobRow.not_before <= db_now())


def ended_now() -> Mapping[str, Any]:
    """The columns that a final state fills in."""
    return {"finished_at": db_now()}


def queued_now(delay: float = 0.0) -> Mapping[str, Any]:
    """The columns that a fresh place in the queue fills in.

    The job may start after `delay` seconds.
    """
    return {
        "queued_at": db_now(),
        "not_before": db_now(delay) if delay > 0 else None,
        "rung_at": None,
    }


def claimed_now(attempt: int) -> Mapping[str, Any]:
    """The columns that a claim fills in."""
    return {
        "attempt": attempt,
        "started_at": func.coalesce(JobRow.started_at, db_now()),
        "not_before": None,
        "cause": None,
        "failure": None,
    }


async def page(
    session: Session, project_id: str, wanted: JobFilter, keys: Keyset
) -> Sequence[JobRow]:
    """Returns a page of jobs and one row more."""
    query = select(JobRow).where(JobRow.project_id == project_id)
    equal = {
        JobRow.experiment_id: wanted.experiment_id,
        JobRow.state: wanted.state,
        JobRow.schedule: wanted.schedule,
        JobRow.pool: wanted.pool,
    }
    query = query.where(
        *(column == str(value) for column, value in equal.items() if value is not None)
    )
    if wanted.run_id is not None:
        query = query.where(
            JobRow.id.in_(select(JobRunRow.job_id).where(JobRunRow.run_id == wanted.run_id))
        )
    return (await session.scalars(paged(query, keys, COLUMNS, JobRow.id))).all()


async def of_run(session: Session, run_id: str) -> Sequence[JobRow]:
    """Returns the jobs of a run, oldest first."""
    query = (
        select(JobRow)
        .join(JobRunRow, JobRunRow.job_id == JobRow.id)
        .where(JobRunRow.run_id == run_id)
    )
    return (await session.scalars(query.order_by(JobRow.created_at, JobRow.id))).all()


async def run_ids(session: Session, job_ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns the runs of each job in their order."""
    wanted = tuple(job_ids)
    query = (
        select(JobRunRow.job_id, JobRunRow.run_id)
        .where(JobRunRow.job_id.in_(wanted))
        .order_by(JobRunRow.job_id, JobRunRow.position)
    )
    found: dict[str, list[str]] = {job_id: [] for job_id in wanted}
    for job_id, run_id in await session.execute(query):
        found[job_id].append(run_id)
    return found


async def ends(session: Session, job_id: str) -> dict[str, JobRunRow]:
    """Returns the runs of a job that have ended for good while it may go on, by their ids."""
    query = (
        select(JobRunRow)
        .where(JobRunRow.job_id == job_id, JobRunRow.outcome.is_not(None))
        .execution_options(populate_existing=True)
    )
    return {row.run_id: row for row in await session.scalars(query)}


async def end_run(session: Session, job_id: str, run_id: str, values: Mapping[str, Any]) -> None:
    """Says how a run of a job ended; the first word counts."""
    mine = JobRunRow.job_id == job_id, JobRunRow.run_id == run_id, JobRunRow.outcome.is_(None)
    await session.execute(
        update(JobRunRow)
        .where(*mine)
        .values(**values, ended_at=db_now())
        .execution_options(synchronize_session=False)
    )


async def unfinished_training(session: Session, run_id: str) -> JobRow | None:
    """Returns the training job of a run that has not ended, nor the run within it, if there is one."""
    query = (
        select(JobRow)
        .join(JobRunRow, JobRunRow.job_id == JobRow.id)
        .where(JobRunRow.run_id == run_id, JobRunRow.outcome.is_(None))
    )
    query = query.where(JobRow.schedule.in_(_TRAINING), JobRow.state.not_in(_FINAL))
    return await session.scalar(query.order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(1))


async def trained(session: Session, run_ids: Collection[str]) -> set[str]:
    """Returns which of some runs ever had a training job."""
    query = (
        select(JobRunRow.run_id)
        .join(JobRow, JobRow.id == JobRunRow.job_id)
        .where(JobRunRow.run_id.in_(run_ids), JobRow.schedule.in_(_TRAINING))
    )
    return set(await session.scalars(query.distinct()))


async def unfinished_of_experiment(session: Session, project_id: str, experiment_id: str) -> int:
    """Returns how many jobs of an experiment have not ended."""
    query = (
        select(func.count())
        .select_from(JobRow)
        .where(JobRow.project_id == project_id, JobRow.experiment_id == experiment_id)
    )
    return (await session.scalar(query.where(JobRow.state.not_in(_FINAL)))) or 0


def _queued(project_id: str, pools: Collection[str], *conditions: ColumnElement[bool]) -> Subquery:
    """The queued jobs of some pools, each with its `turn`.

    The order of a pool's queue is priority, then fair share between people, then age: a person's
    n-th waiting job stands behind everybody's earlier ones, where n counts the jobs that the person
    already has running.
    """
    mine = (JobRow.project_id == project_id, JobRow.pool.in_(pools))
    held = select(JobRow.pool, JobRow.created_by, func.count().label("jobs")).where(
        *mine, JobRow.state.in_(_LIVE)
    )
    busy = held.group_by(JobRow.pool, JobRow.created_by).subquery()
    own = func.row_number().over(
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
    query = select(*columns, (own + func.coalesce(busy.c.jobs, 0)).label("turn"))
    query = query.outerjoin(
        busy, and_(busy.c.pool == JobRow.pool, busy.c.created_by == JobRow.created_by)
    )
    return query.where(*mine, JobRow.state == JobState.QUEUED.value, *conditions).subquery()


def _turn(queued: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (
        queued.c.priority.desc(),
        queued.c.turn,
        queued.c.queued_at,
        queued.c.created_at,
        queued.c.id,
    )


async def positions(session: Session, project_id: str, pools: Collection[str]) -> dict[str, int]:
    """Returns the place of every queued job of some pools in its pool's queue, from 1."""
    queued = _queued(project_id, pools)
    place = func.row_number().over(partition_by=queued.c.pool, order_by=_turn(queued))
    return dict((await session.execute(select(queued.c.id, place))).all())


async def ready(
    session: Session, queue: Queue, ring_seconds: float, limit: int
) -> Sequence[ReadyJob]:
    """Returns the next jobs of a queue that wait for a (new) doorbell, in order.

    Those that its workers can take.
    """
    fits = (
        JobRow.gpus <= queue.most_gpus,
        JobRow.work_order_version.in_(queue.versions),
        may_start_now(),
        ~_held(),
    )
    queued = _queued(queue.project_id, [queue.pool], *fits)
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


async def held(session: Session, job_ids: Collection[str]) -> set[str]:
    """Returns which of some queued jobs are continuous evaluations that have nothing to do before
    somebody trains their run.
    """
    return (
        set(await session.scalars(select(JobRow.id).where(JobRow.id.in_(job_ids), _held())))
        if job_ids
        else set()
    )


def _held() -> ColumnElement[bool]:
    """The condition that a continuous evaluation would only take a slot away, perhaps the very one
    that its training waits for.

    Its run has a training job that is queued or paused, none that is live, and no verified snapshot
    that the job has not evaluated.
    """
    mine, theirs, training = aliased(JobRunRow), aliased(JobRunRow), aliased(JobRow)
    same_run = (
        mine.job_id == JobRow.id,
        theirs.run_id == mine.run_id,
        training.id == theirs.job_id,
        training.schedule.in_(_TRAINING),
    )
    live = exists().where(*same_run, training.state.in_(_LIVE)).correlate(JobRow)
    unfinished = exists().where(*same_run, training.state.not_in(_FINAL)).correlate(JobRow)
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


async def waiting_queues(session: Session) -> Sequence[tuple[str, str]]:
    """Returns the (project, pool) pairs that a job waits in."""
    query = (
        select(JobRow.project_id, JobRow.pool)
        .where(JobRow.state == JobState.QUEUED.value, may_start_now())
        .distinct()
    )
    return [
        (project_id, pool)
        for project_id, pool in await session.execute(
            query.order_by(JobRow.project_id, JobRow.pool)
        )
    ]


async def pinned_to_snapshots(session: Session) -> Sequence[JobRow]:
    """Returns the queued jobs that read one snapshot named by its id."""
    query = select(JobRow).where(
        JobRow.state == JobState.QUEUED.value, JobRow.schedule.not_in(_TRAINING)
    )
    jobs = (await session.scalars(query)).all()
    return [job for job in jobs if str((job.evaluate or {}).get("snapshot", "")).startswith("snp_")]


async def mark_rung(session: Session, rung: Collection[ReadyJob]) -> None:
    """Notes that doorbells went out; a job that has moved on meanwhile is left alone."""
    for job in rung:
        same = (
            JobRow.id == job.job_id,
            JobRow.attempt == job.expected_attempt - 1,
            JobRow.state == JobState.QUEUED.value,
        )
        statement = update(JobRow).where(*same).values(rung_at=db_now(), rings=JobRow.rings + 1)
        await session.execute(statement.execution_options(synchronize_session=False))


async def counts_by_pool(session: Session, project_id: str) -> dict[str, tuple[int, int]]:
    """Returns, per pool, how many jobs are queued and how many hold a lease."""
    queued = func.count().filter(JobRow.state == JobState.QUEUED.value)
    live = func.count().filter(JobRow.state.in_(_LIVE))
    query = (
        select(JobRow.pool, queued, live)
        .where(JobRow.project_id == project_id, JobRow.state.not_in(_FINAL))
        .group_by(JobRow.pool)
    )
    return {pool: (waiting, running) for pool, waiting, running in await session.execute(query)}


async def outstanding_rings(session: Session, queue: Queue, ring_seconds: float) -> int:
    """Returns how many doorbells of a queue may still be answered."""
    young = and_(JobRow.rung_at.is_not(None), JobRow.rung_at > db_now(-ring_seconds))
    mine = (
        JobRow.state == JobState.QUEUED.value,
        JobRow.project_id == queue.project_id,
        JobRow.pool == queue.pool,
    )
    query = select(func.count()).select_from(JobRow).where(*mine, young)
    return (await session.scalar(query)) or 0


async def live_workers(session: Session, job_ids: Collection[str]) -> dict[str, str]:
    """Returns the worker of each job's live attempt, or of its last one where it has ended."""
    query = select(AttemptRow.job_id, AttemptRow.worker_id).join(
        JobRow, and_(JobRow.id == AttemptRow.job_id, JobRow.attempt == AttemptRow.number)
    )
    return dict((await session.execute(query.where(AttemptRow.job_id.in_(job_ids)))).all())


async def seconds_until(session: Session, moments: Collection[datetime]) -> dict[datetime, float]:
    """Returns how far moments lie in the future of the database's clock; 0 for the past."""
    if not moments:
        return {}
    present: datetime = (await session.execute(select(db_now()))).scalar_one()
    return {moment: max(0.0, (moment - present).total_seconds()) for moment in moments}


async def set_history(session: Session, job: JobRow, history: History) -> None:
    """Notes the failures of a job so far."""
    values = {
        "infrastructure_failures": history.infrastructure_failures,
        "counted_failures": history.counted_failures,
        "quick_deaths": history.quick_deaths,
    }
    await session.execute(
        update(JobRow)
        .where(JobRow.id == job.id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(job)
