"""Rows of jobs. Only `app.services.jobs.job_state` calls `move`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db import clock
from app.db.bulk_insert import insert_rows
from app.db.clock import db_now
from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow, JobRow, JobRunRow
from app.db.repositories.access import select_user_id
from app.db.repositories.keyset_pages import select_page
from app.domain.paging import Keyset
from app.domain.retry import FailureHistory
from palestra.contract.names import PriorityClass, Schedule
from palestra.contract.states import FINAL_JOB_STATES, LIVE_JOB_STATES, JobState

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": JobRow.created_at,
    "priority": JobRow.priority,
}


TRAINING: Final = [schedule for schedule in Schedule if schedule.writes_training_state]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Filter of the list of jobs; a member that is `None` takes all."""

    experiment_id: str | None = None
    run_id: str | None = None
    states: Collection[JobState] = ()
    """Empty takes all."""
    schedule: Schedule | None = None
    pool: str | None = None
    priority_class: PriorityClass | None = None
    user: str | None = None
    """Login name of who submitted them."""
    ids: Collection[str] | None = None


async def insert_jobs(
    session: Session, rows: Collection[dict[str, Any]], runs: Mapping[str, Sequence[str]]
) -> Sequence[JobRow]:
    """Adds jobs and, per job, the runs that it works on.

    Returns:
        The jobs, of which the session knows nothing.
    """
    now = await clock.now(session)
    jobs = await insert_rows(
        session, JobRow, [{**row, "created_at": now, "queued_at": now} for row in rows]
    )
    links = [
        {"job_id": job_id, "run_id": run_id, "position": place}
        for job_id, run_ids in runs.items()
        for place, run_id in enumerate(run_ids)
    ]
    await session.execute(insert(JobRunRow), links)
    return jobs


async def find(
    session: Session, project_ids: Collection[str], job_id: str, *, lock: bool = False
) -> JobRow | None:
    """Returns a job of one of the given projects.

    With `lock`, the row is locked against other changes until the transaction ends.
    """
    query = (
        select(JobRow)
        .where(JobRow.project_id.in_(project_ids), JobRow.id == job_id)
        .execution_options(populate_existing=True)
    )
    return await session.scalar(query.with_for_update() if lock else query)


async def find_by_id(session: Session, job_id: str, *, lock: bool = False) -> JobRow | None:
    """Returns a job of any project."""
    query = select(JobRow).where(JobRow.id == job_id).execution_options(populate_existing=True)
    return await session.scalar(query.with_for_update() if lock else query)


async def lock_of_attempt(session: Session, attempt_id: str) -> JobRow | None:
    """Returns the job of an attempt, locked until the transaction ends."""
    return await session.scalar(_select_of_attempt(), {"attempt_id": attempt_id})


@cache
def _select_of_attempt() -> Select[JobRow]:
    job_id = select(AttemptRow.job_id).where(AttemptRow.id == bindparam("attempt_id"))
    query = select(JobRow).where(JobRow.id == job_id.scalar_subquery()).with_for_update()
    return query.execution_options(populate_existing=True)


async def list_by_ids(session: Session, job_ids: Collection[str]) -> Sequence[JobRow]:
    """Returns jobs by id."""
    if not job_ids:
        return []
    return (await session.scalars(select(JobRow).where(is_any_of(JobRow.id, job_ids)))).all()


async def move(
    session: Session,
    job: JobRow,
    to: JobState,
    values: Mapping[str, Any],
    *conditions: ColumnElement[bool],
) -> bool:
    """Writes a state if the job is still in the state and at the attempt that `job` shows.

    One statement checks and writes. Refreshes `job`.

    Returns:
        Whether the state was written.
    """
    same = (JobRow.id == job.id, JobRow.state == job.state, JobRow.attempt == job.attempt)
    statement = (
        update(JobRow).where(*same, *conditions).values(state=to, **values).returning(JobRow)
    )
    # The returned columns bring `job` up to date, which is in the session.
    options = {"synchronize_session": False, "populate_existing": True}
    return await session.scalar(statement.execution_options(**options)) is not None


def may_start_now() -> ColumnElement[bool]:
    """The condition that a queued job's delay is over."""
    return or_(JobRow.not_before.is_(None), JobRow.not_before <= db_now())


def get_end_columns() -> Mapping[str, Any]:
    """The columns to write when a job enters a final state."""
    return {"finished_at": db_now()}


def get_queueing_columns(delay: float = 0.0, *, keeps_place: bool) -> Mapping[str, Any]:
    """The columns to write when a job is queued.

    The job may start after `delay` seconds. `keeps_place` leaves its age in the queue as it was.
    """
    place = {} if keeps_place else {"queued_at": db_now(), "own_place": 0}
    return {**place, "not_before": db_now(delay) if delay > 0 else None}


def columns_of_assignment(to: JobState) -> Mapping[str, Any]:
    """The columns of the assignment and of its charge to write with a new state.

    A job is charged while it is live, from its assignment on.
    """
    ended = {"assigned_worker_id": None, "assigned_until": None}
    return ended if to in LIVE_JOB_STATES else {**ended, "charged_weight": None}


def get_claim_columns(attempt: int) -> Mapping[str, Any]:
    """The columns to write when a job is claimed."""
    return {
        "attempt": attempt,
        "started_at": func.coalesce(JobRow.started_at, db_now()),
        "not_before": None,
        "cause": None,
        "failure": None,
    }


async def list_page(
    session: Session, project_ids: Collection[str], wanted: JobFilter, keys: Keyset
) -> Sequence[JobRow]:
    """Returns a page of the jobs of the given projects and one row more."""
    query = select(JobRow).where(*matches_filter(project_ids, wanted))
    return (await session.scalars(select_page(query, keys, COLUMNS, JobRow.id))).all()


def matches_filter(project_ids: Collection[str], wanted: JobFilter) -> list[ColumnElement[bool]]:
    """The conditions that a job is of one of some projects and matches a filter."""
    equal = {
        JobRow.experiment_id: wanted.experiment_id,
        JobRow.schedule: wanted.schedule,
        JobRow.pool: wanted.pool,
        JobRow.priority_class: wanted.priority_class,
    }
    found: list[ColumnElement[bool]] = [JobRow.project_id.in_(project_ids)]
    found += [column == value for column, value in equal.items() if value is not None]
    if wanted.states:
        found.append(JobRow.state.in_(wanted.states))
    if wanted.user is not None:
        found.append(JobRow.created_by == select_user_id(wanted.user))
    if wanted.run_id is not None:
        runs = select(JobRunRow.job_id).where(JobRunRow.run_id == wanted.run_id)
        found.append(JobRow.id.in_(runs))
    if wanted.ids is not None:
        found.append(JobRow.id.in_(wanted.ids))
    return found


async def list_for_run(session: Session, run_id: str) -> Sequence[JobRow]:
    """Returns the jobs of a run, oldest first."""
    query = (
        select(JobRow)
        .join(JobRunRow, JobRunRow.job_id == JobRow.id)
        .where(JobRunRow.run_id == run_id)
    )
    return (await session.scalars(query.order_by(JobRow.created_at, JobRow.id))).all()


async def load_run_ids(session: Session, job_ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns the runs of each job in their order."""
    seeds = await load_run_seeds(session, job_ids)
    return {job_id: list(runs) for job_id, runs in seeds.items()}


async def load_run_seeds(session: Session, job_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """Returns by job the seeds of its runs by run ID, in the order of the runs."""
    seeds: dict[str, dict[str, int]] = {job_id: {} for job_id in job_ids}
    query = (
        select(JobRunRow.job_id, JobRunRow.run_id, RunRow.seed)
        .join(RunRow, RunRow.id == JobRunRow.run_id)
        .where(JobRunRow.job_id.in_(seeds))
        .order_by(JobRunRow.job_id, JobRunRow.position)
    )
    for job_id, run_id, seed in await session.execute(query):
        seeds[job_id][run_id] = seed
    return seeds


async def list_runs_with_links(
    session: Session, job_id: str, *, lock: bool = False
) -> list[tuple[RunRow, JobRunRow]]:
    """Returns the runs of a job in their order, each with its link to the job.

    The link says how a run ended while the job may train other runs. With `lock`, the runs are
    locked, in the order of their ids, against concurrent claims.
    """
    statement = _select_runs_with_links(lock=lock)
    found = [(run, link) for run, link in await session.execute(statement, {"job_id": job_id})]
    return sorted(found, key=lambda pair: pair[1].position)


@cache
def _select_runs_with_links(*, lock: bool) -> Any:
    query = (
        select(RunRow, JobRunRow)
        .join(JobRunRow, JobRunRow.run_id == RunRow.id)
        .where(JobRunRow.job_id == bindparam("job_id"))
        .order_by(RunRow.id)
        .execution_options(populate_existing=True)
    )
    return query.with_for_update(of=RunRow) if lock else query


async def end_run(session: Session, job_id: str, run_id: str, values: Mapping[str, Any]) -> None:
    """Stores how a run of a job ended; the first report counts."""
    mine = JobRunRow.job_id == job_id, JobRunRow.run_id == run_id, JobRunRow.outcome.is_(None)
    await session.execute(
        update(JobRunRow)
        .where(*mine)
        .values(**values, ended_at=db_now())
        .execution_options(synchronize_session=False)
    )


async def find_unfinished_training(session: Session, run_id: str) -> JobRow | None:
    """Returns the unfinished training job of a run, `None` if there is none.

    A job of a pack does not count once this run has ended, even if it trains other runs.
    """
    query = (
        select(JobRow)
        .join(JobRunRow, JobRunRow.job_id == JobRow.id)
        .where(JobRunRow.run_id == run_id, JobRunRow.outcome.is_(None))
    )
    query = query.where(JobRow.schedule.in_(TRAINING), JobRow.state.not_in(FINAL_JOB_STATES))
    return await session.scalar(query.order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(1))


async def filter_trained(session: Session, run_ids: Collection[str]) -> set[str]:
    """Returns the given runs that ever had a training job."""
    query = (
        select(JobRunRow.run_id)
        .join(JobRow, JobRow.id == JobRunRow.job_id)
        .where(JobRunRow.run_id.in_(run_ids), JobRow.schedule.in_(TRAINING))
    )
    return set(await session.scalars(query.distinct()))


async def count_unfinished(session: Session, project_id: str, experiment_id: str) -> int:
    """Returns how many jobs of an experiment have not ended."""
    query = (
        select(func.count())
        .select_from(JobRow)
        .where(JobRow.project_id == project_id, JobRow.experiment_id == experiment_id)
    )
    return (await session.scalar(query.where(JobRow.state.not_in(FINAL_JOB_STATES)))) or 0


async def list_pinned_to_snapshots(session: Session) -> Sequence[JobRow]:
    """Returns the queued jobs that read one snapshot named by its id."""
    query = select(JobRow).where(JobRow.state == JobState.QUEUED, JobRow.schedule.not_in(TRAINING))
    jobs = (await session.scalars(query)).all()
    return [job for job in jobs if str((job.evaluate or {}).get("snapshot", "")).startswith("snp_")]


async def load_workers(session: Session, job_ids: Collection[str]) -> dict[str, str]:
    """Returns the worker of each job's live attempt, or of its latest attempt if that has ended."""
    query = select(AttemptRow.job_id, AttemptRow.worker_id).join(
        JobRow, and_(JobRow.id == AttemptRow.job_id, JobRow.attempt == AttemptRow.number)
    )
    return dict((await session.execute(query.where(AttemptRow.job_id.in_(job_ids)))).all())


async def measure_seconds_until(
    session: Session, moments: Collection[datetime]
) -> dict[datetime, float]:
    """Returns the seconds from the database's time to the given times; 0 for times in the past."""
    if not moments:
        return {}
    present: datetime = (await session.execute(select(db_now()))).scalar_one()
    return {moment: max(0.0, (moment - present).total_seconds()) for moment in moments}


def allow_code_change(job: JobRow) -> None:
    """Lets a job run with other code than its experiment's."""
    job.allow_code_change = True


async def set_history(session: Session, job: JobRow, history: FailureHistory) -> None:
    """Stores the failure counts of a job, where they differ from those that `job` shows."""
    values = {
        "infrastructure_failures": history.infrastructure_failures,
        "failed_starts": history.failed_starts,
        "counted_failures": history.counted_failures,
        "quick_deaths": history.quick_deaths,
    }
    if all(getattr(job, name) == value for name, value in values.items()):
        return
    await session.execute(
        update(JobRow)
        .where(JobRow.id == job.id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(job)
