"""What a decision on a pool's queue reads, and the assignments that it writes.

Only the first jobs of some groups are read: the cost does not depend on the length of the queue.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow, ProjectPoolRow
from app.db.models.projects import ProjectRow
from app.db.models.usage import QueueGroupRow, UsageAccountRow
from app.db.repositories.job_queue import is_idle_evaluation
from app.db.repositories.jobs import LIVE, may_start_now
from app.db.upsert import insert_or_update
from app.domain.queue.start_order import Group, QueuedJob, UsageAccount
from palestra.contract.names import PriorityClass, Schedule
from palestra.contract.states import JobState

_COLUMNS: Final = (
    JobRow.id,
    JobRow.attempt,
    JobRow.priority_class,
    JobRow.project_id,
    JobRow.created_by,
    JobRow.priority,
    JobRow.seed_index,
    JobRow.queued_at,
    JobRow.gpus,
    JobRow.work_order_version,
    JobRow.experiment_id,
    JobRow.schedule,
    JobRow.allow_code_change,
)
_ORDER: Final = (JobRow.priority.desc(), JobRow.seed_index, JobRow.queued_at, JobRow.id)

_FEW_GROUPS: Final = 8
"""Groups whose first jobs are read one group after the other from SQLite."""

Requirement = tuple[str, str, str, int]
"""Project ID, experiment ID, schedule and GPUs of jobs that can run on the same workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedJob:
    """A queued job with what its workers must have."""

    job: QueuedJob
    experiment_id: str
    schedule: str
    allow_code_change: bool

    @property
    def requirement(self) -> Requirement:
        """The requirement that it shares with other jobs."""
        return self.job.group.project_id, self.experiment_id, self.schedule, self.job.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveUsage:
    """Devices that jobs of an account hold, with the sum of their weights."""

    account: UsageAccount
    priority_class: PriorityClass
    devices: int
    weight: float


async def join_group(session: Session, jobs: Collection[JobRow]) -> None:
    """Stores that the persons of some jobs have queued jobs."""
    groups = {(job.pool, job.priority_class, job.project_id, job.created_by) for job in jobs}
    names = ("pool", "priority_class", "project_id", "user_id")
    rows = [dict(zip(names, group, strict=True)) for group in sorted(groups)]
    if rows:
        await session.execute(
            insert_or_update(session, QueueGroupRow, rows, {"queued_at": db_now()})
        )


async def drop_empty_group(session: Session, pool: str, group: Group) -> None:
    """Deletes a group without queued jobs; one in which a job was queued meanwhile stays.

    The row is locked before its jobs are looked for, so a concurrent `join_group` waits, and
    inserts the row again after this transaction.
    """
    mine = (
        QueueGroupRow.pool == pool,
        QueueGroupRow.priority_class == group.priority_class.value,
        QueueGroupRow.project_id == group.project_id,
        QueueGroupRow.user_id == group.user_id,
    )
    if await session.scalar(select(QueueGroupRow.pool).where(*mine).with_for_update()) is None:
        return
    has_jobs = exists().where(*_of_group(pool, group))
    if not await session.scalar(select(has_jobs)):
        await session.execute(
            delete(QueueGroupRow).where(*mine).execution_options(synchronize_session=False)
        )


async def list_open_pools(session: Session) -> Sequence[str]:
    """Returns the names of the pools in which jobs may be queued, without paused ones."""
    query = (
        select(QueueGroupRow.pool)
        .join(PoolRow, PoolRow.name == QueueGroupRow.pool)
        .where(PoolRow.paused_at.is_(None))
        .distinct()
    )
    return (await session.scalars(query.order_by(QueueGroupRow.pool))).all()


async def list_groups(session: Session, pool: str) -> dict[Group, datetime]:
    """Returns the groups that may have queued jobs in a pool, with since when they wait."""
    return {
        Group(PriorityClass(name), project_id, user_id): waiting_since
        for name, project_id, user_id, waiting_since in await fetch(
            session, _select_groups(), pool=pool
        )
    }


@cache
def _select_groups() -> Any:
    return select(
        QueueGroupRow.priority_class,
        QueueGroupRow.project_id,
        QueueGroupRow.user_id,
        QueueGroupRow.waiting_since,
    ).where(QueueGroupRow.pool == bindparam("pool"))


async def load_shares(session: Session, pool: str) -> dict[str, float]:
    """Returns the share of each project that a pool admits, without deleted ones."""
    return dict(await fetch(session, _select_shares(), pool=pool))


@cache
def _select_shares() -> Any:
    return (
        select(ProjectPoolRow.project_id, ProjectPoolRow.share)
        .join(PoolRow, PoolRow.id == ProjectPoolRow.pool_id)
        .join(ProjectRow, ProjectRow.id == ProjectPoolRow.project_id)
        .where(PoolRow.name == bindparam("pool"), ProjectRow.deleted_at.is_(None))
    )


async def load_usage(session: Session, pool: str) -> dict[UsageAccount, float]:
    """Returns the usage of each account of a pool by attempts that have ended."""
    return {
        UsageAccount(project_id, user_id): seconds
        for project_id, user_id, seconds in await fetch(session, _select_usage(), pool=pool)
    }


@cache
def _select_usage() -> Any:
    return select(
        UsageAccountRow.project_id, UsageAccountRow.user_id, UsageAccountRow.weighted_seconds
    ).where(UsageAccountRow.pool == bindparam("pool"))


async def load_live_usage(session: Session, pool: str) -> list[LiveUsage]:
    """Returns what the assigned and live jobs of a pool hold, by account and class."""
    return [
        LiveUsage(
            account=UsageAccount(project_id, user_id),
            priority_class=PriorityClass(name),
            devices=int(count),
            weight=float(weight),
        )
        for project_id, user_id, name, count, weight in await fetch(
            session, _select_live_usage(), pool=pool
        )
    ]


@cache
def _select_live_usage() -> Any:
    devices = case((JobRow.gpus > 0, JobRow.gpus), else_=1)
    group = (JobRow.project_id, JobRow.created_by, JobRow.priority_class)
    return (
        select(*group, func.sum(devices), func.sum(devices * JobRow.charged_weight))
        .where(
            JobRow.pool == bindparam("pool"), holds_devices(), JobRow.charged_weight.is_not(None)
        )
        .group_by(*group)
    )


async def load_heads(
    session: Session,
    pool: str,
    wanted: Collection[Group],
    limit: int,
    excluded: Collection[Requirement] = (),
) -> dict[Group, list[LoadedJob]]:
    """Returns the first unassigned jobs of some groups in their order, at most `limit` of each.

    Leaves out jobs with an excluded requirement, jobs that may not start yet and continuous
    evaluations with nothing to evaluate.
    """
    values: dict[str, Any] = {"pool": pool, "limit": limit}
    if excluded:
        values["excluded"] = list(excluded)
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    if is_sqlite and len(wanted) <= _FEW_GROUPS:
        statement = _select_heads_of_one(excludes=bool(excluded))
        rows = [
            row
            for group in wanted
            for row in await fetch(session, statement, **values, **group._asdict())
        ]
    else:
        values["groups"] = [(one.priority_class.value, *one[1:]) for one in wanted]
        select_many = _select_heads_by_number if is_sqlite else _select_heads_of_many
        statement = select_many(excludes=bool(excluded))
        rows = list(await fetch(session, statement, **values))
    found: dict[Group, list[LoadedJob]] = {group: [] for group in wanted}
    for row in rows:
        loaded = _to_job(row)
        found[loaded.job.group].append(loaded)
    for jobs in found.values():
        jobs.sort(key=lambda loaded: loaded.job.own_order)
    return found


@cache
def _select_heads_of_one(*, excludes: bool) -> Any:
    return _select_heads(
        (
            JobRow.pool == bindparam("pool"),
            JobRow.priority_class == bindparam("priority_class"),
            JobRow.project_id == bindparam("project_id"),
            JobRow.created_by == bindparam("user_id"),
        ),
        excludes=excludes,
    )


@cache
def _select_heads_by_number(*, excludes: bool) -> Any:
    """The first jobs of many groups for SQLite, which has no LATERAL: it reads all their jobs."""
    group = (JobRow.priority_class, JobRow.project_id, JobRow.created_by)
    number = func.row_number().over(partition_by=group, order_by=_ORDER).label("number")
    numbered = (
        _select_queued(
            (
                JobRow.pool == bindparam("pool"),
                tuple_(*group).in_(bindparam("groups", expanding=True)),
            ),
            excludes=excludes,
        )
        .add_columns(number)
        .subquery()
    )
    return select(*(numbered.c[column.key] for column in _COLUMNS)).where(
        numbered.c.number <= bindparam("limit")
    )


@cache
def _select_heads_of_many(*, excludes: bool) -> Any:
    inner = _select_heads(
        (
            JobRow.pool == QueueGroupRow.pool,
            JobRow.priority_class == QueueGroupRow.priority_class,
            JobRow.project_id == QueueGroupRow.project_id,
            JobRow.created_by == QueueGroupRow.user_id,
        ),
        excludes=excludes,
    ).lateral()
    key = tuple_(QueueGroupRow.priority_class, QueueGroupRow.project_id, QueueGroupRow.user_id)
    return (
        select(*(inner.c[column.key] for column in _COLUMNS))
        .select_from(QueueGroupRow)
        .join(inner, true())
        .where(
            QueueGroupRow.pool == bindparam("pool"),
            key.in_(bindparam("groups", expanding=True)),
        )
    )


def _select_heads(conditions: Sequence[ColumnElement[bool]], *, excludes: bool) -> Any:
    query = _select_queued(conditions, excludes=excludes)
    return query.order_by(*_ORDER).limit(bindparam("limit"))


def _select_queued(conditions: Sequence[ColumnElement[bool]], *, excludes: bool) -> Any:
    query = select(*_COLUMNS).where(
        *conditions,
        is_queued(),
        may_start_now(),
        or_(JobRow.assigned_until.is_(None), JobRow.assigned_until <= db_now()),
        ~is_idle_evaluation(),
    )
    if excludes:
        requirement = tuple_(JobRow.project_id, JobRow.experiment_id, JobRow.schedule, JobRow.gpus)
        query = query.where(requirement.not_in(bindparam("excluded", expanding=True)))
    return query


async def fetch(session: Session, statement: Any, **values: Any) -> Sequence[Any]:
    """Executes a statement that was built once.

    Building it for each decision would cost more than the database takes to answer.
    """
    return (await (await session.connection()).execute(statement, values)).all()


def _of_group(pool: str, group: Group) -> tuple[ColumnElement[bool], ...]:
    return (
        JobRow.pool == pool,
        JobRow.priority_class == group.priority_class.value,
        JobRow.project_id == group.project_id,
        JobRow.created_by == group.user_id,
        is_queued(),
    )


def _to_job(row: Any) -> LoadedJob:
    # Exports of an experiment may differ in their formats.
    shared = row.id if row.schedule == Schedule.EXPORT else f"{row.experiment_id} {row.schedule}"
    job = QueuedJob(
        id=row.id,
        attempt=row.attempt,
        group=Group(PriorityClass(row.priority_class), row.project_id, row.created_by),
        priority=row.priority,
        seed_index=row.seed_index,
        queued_at=row.queued_at,
        gpus=row.gpus,
        version=row.work_order_version,
        requirements=f"{row.project_id} {shared} {row.allow_code_change}",
    )
    return LoadedJob(
        job=job,
        experiment_id=row.experiment_id,
        schedule=row.schedule,
        allow_code_change=row.allow_code_change,
    )


async def load_job(session: Session, job_id: str) -> LoadedJob | None:
    """Returns a queued job, also one that may not start yet or is assigned."""
    query = select(*_COLUMNS).where(JobRow.id == job_id, is_queued())
    row = (await session.execute(query)).first()
    return None if row is None else _to_job(row)


def is_queued() -> ColumnElement[bool]:
    """The condition that a job is queued.

    The state is a literal: a partial index serves no statement whose state is a parameter.
    """
    return JobRow.state == literal_column(f"'{JobState.QUEUED.value}'")


def holds_devices() -> ColumnElement[bool]:
    """The condition that a job is assigned or live."""
    return or_(
        JobRow.state.in_(LIVE),
        and_(is_queued(), JobRow.assigned_until > db_now()),
    )
