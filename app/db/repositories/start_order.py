"""What a decision on the queue of a pool reads: shares, usage, and the first jobs of groups.

The cost does not depend on the length of the queue.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    String,
    bindparam,
    case,
    cast,
    column,
    func,
    select,
    true,
    tuple_,
)

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow, ProjectPoolRow
from app.db.models.projects import ProjectRow
from app.db.models.usage import UsageAccountRow
from app.db.repositories import dependencies, job_queue, queue_groups
from app.db.repositories.jobs import may_start_now
from app.domain.queue.start_order import Group, QueuedJob, UsageAccount
from palestra.contract.job_options import Limits
from palestra.contract.names import PriorityClass, Schedule

_COLUMNS: Final = (
    JobRow.id,
    JobRow.attempt,
    JobRow.priority_class,
    JobRow.project_id,
    JobRow.created_by,
    JobRow.priority,
    JobRow.own_place,
    JobRow.seed_index,
    JobRow.queued_at,
    JobRow.gpus,
    JobRow.work_order_version,
    JobRow.experiment_id,
    JobRow.schedule,
    JobRow.allow_code_change,
    JobRow.limits["wall_seconds"].as_integer().label("wall_seconds"),
    JobRow.limits["grace_seconds"].as_integer().label("grace_seconds"),
)
_ORDER: Final = (
    JobRow.priority.desc(),
    JobRow.own_place,
    JobRow.seed_index,
    JobRow.queued_at,
    JobRow.id,
)

_GRACE_SECONDS: Final = Limits().grace_seconds

_GROUP_COLUMNS: Final = Group._fields

_FEW_GROUPS: Final = 8
"""Groups whose first jobs are read one group after the other from SQLite."""

Requirement = str
"""What jobs that start on the same workers at the same times have in common.

Project ID, experiment ID, schedule, GPUs, and time limit in seconds, 0 for none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedJob:
    """A queued job with the requirements on its workers."""

    job: QueuedJob
    schedule: Schedule
    wall_seconds: int
    """Time limit that was asked for; 0 for none."""
    allow_code_change: bool

    @property
    def requirement(self) -> Requirement:
        """The requirement that it shares with other jobs."""
        job = self.job
        parts = (*job.experiment, self.schedule, job.gpus, self.wall_seconds)
        return " ".join(map(str, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveUsage:
    """Devices that jobs of an account hold, with the sum of their weights."""

    account: UsageAccount
    priority_class: PriorityClass
    devices: int
    weight: float


async def load_shares(session: Session, pool: str) -> dict[str, float]:
    """Returns the share of each project that a pool admits, without deleted ones."""
    return dict((await session.execute(select_shares(), {"pool": pool})).all())


@cache
def select_shares() -> Any:
    """Builds the statement of `load_shares`."""
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
        for project_id, user_id, seconds in await session.execute(select_usage(), {"pool": pool})
    }


@cache
def select_usage() -> Any:
    """Builds the statement of `load_usage`."""
    return select(
        UsageAccountRow.project_id, UsageAccountRow.user_id, UsageAccountRow.weighted_seconds
    ).where(UsageAccountRow.pool == bindparam("pool"))


async def load_live_usage(session: Session, pool: str) -> list[LiveUsage]:
    """Returns the devices that the assigned and live jobs of a pool hold, by account and class."""
    return [
        LiveUsage(
            account=UsageAccount(project_id, user_id),
            priority_class=priority_class,
            devices=int(count),
            weight=float(weight),
        )
        for project_id, user_id, priority_class, count, weight in await session.execute(
            select_live_usage(), {"pool": pool}
        )
    ]


@cache
def select_live_usage() -> Any:
    """Builds the statement of `load_live_usage`."""
    devices = case((JobRow.gpus > 0, JobRow.gpus), else_=1)
    group = (JobRow.project_id, JobRow.created_by, JobRow.priority_class)
    sums = func.sum(devices).label("devices"), func.sum(devices * JobRow.charged_weight)
    return (
        select(*group, sums[0], sums[1].label("weight"))
        .where(
            JobRow.pool == bindparam("pool"),
            job_queue.holds_devices(),
            JobRow.charged_weight.is_not(None),
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
    """Returns the first unassigned jobs of the given groups in order, at most `limit` of each.

    Leaves out jobs with an excluded requirement, jobs that may not start yet and continuous
    evaluations with nothing to evaluate.
    """
    if not wanted:
        return {}
    values: dict[str, Any] = {"pool": pool, "limit": limit}
    if excluded:
        values["excluded"] = list(excluded)
    if session.get_bind().dialect.name != "sqlite":
        columns = zip(*queue_groups.build_keys(wanted), strict=True)
        values |= zip(_GROUP_COLUMNS, map(list, columns), strict=True)
        rows = (await session.execute(_select_heads_of_many(excludes=bool(excluded)), values)).all()
    elif len(wanted) <= _FEW_GROUPS:
        statement = _select_heads_of_one(excludes=bool(excluded))
        rows = [
            row
            for group in wanted
            for row in await session.execute(statement, {**values, **group._asdict()})
        ]
    else:
        values["groups"] = queue_groups.build_keys(wanted)
        statement = _select_heads_by_number(excludes=bool(excluded))
        rows = (await session.execute(statement, values)).all()
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
    """The first jobs of many groups for PostgreSQL.

    Arrays keep the statement's text the same whatever their length, so it is planned once.
    """
    arrays = [bindparam(name, type_=ARRAY(String)) for name in _GROUP_COLUMNS]
    columns = [column(name, String) for name in _GROUP_COLUMNS]
    wanted = func.unnest(*arrays).table_valued(*columns, name="wanted").render_derived()
    group = (JobRow.priority_class, JobRow.project_id, JobRow.created_by)
    conditions = [mine == wanted.c[name] for mine, name in zip(group, _GROUP_COLUMNS, strict=True)]
    inner = _select_heads(
        (JobRow.pool == bindparam("pool"), *conditions), excludes=excludes
    ).lateral()
    return select(*(inner.c[one.key] for one in _COLUMNS)).select_from(wanted.join(inner, true()))


def _select_heads(conditions: Sequence[ColumnElement[bool]], *, excludes: bool) -> Any:
    query = _select_queued(conditions, excludes=excludes)
    return query.order_by(*_ORDER).limit(bindparam("limit"))


def _select_queued(conditions: Sequence[ColumnElement[bool]], *, excludes: bool) -> Any:
    query = select(*_COLUMNS).where(
        *conditions,
        job_queue.is_unassigned(),
        dependencies.has_none_open(),
        may_start_now(),
        ~job_queue.is_idle_evaluation(),
    )
    if excludes:
        wall_seconds = func.coalesce(JobRow.limits["wall_seconds"].as_integer(), 0)
        names = (JobRow.project_id, JobRow.experiment_id, JobRow.schedule)
        numbers = (cast(JobRow.gpus, String), cast(wall_seconds, String))
        requirement = reduce(lambda left, right: left + " " + right, (*names, *numbers))
        query = query.where(requirement.not_in(bindparam("excluded", expanding=True)))
    return query


def _to_job(row: Any) -> LoadedJob:
    # Exports of an experiment may differ in their formats.
    shared = row.id if row.schedule == Schedule.EXPORT else f"{row.experiment_id} {row.schedule}"
    # The time limit of an evaluation that follows a training does not count while that trains.
    is_bounded = not row.schedule.follows_training
    job = QueuedJob(
        id=row.id,
        attempt=row.attempt,
        group=Group(row.priority_class, row.project_id, row.created_by),
        priority=row.priority,
        own_place=row.own_place,
        seed_index=row.seed_index,
        queued_at=row.queued_at,
        gpus=row.gpus,
        version=row.work_order_version,
        requirements=f"{row.project_id} {shared} {row.allow_code_change}",
        experiment_id=row.experiment_id,
        wall_seconds=row.wall_seconds if is_bounded else None,
        grace_seconds=_GRACE_SECONDS if row.grace_seconds is None else row.grace_seconds,
    )
    return LoadedJob(
        job=job,
        schedule=row.schedule,
        wall_seconds=row.wall_seconds or 0,
        allow_code_change=row.allow_code_change,
    )


async def load_job(session: Session, job_id: str) -> LoadedJob | None:
    """Returns a queued job, also one that may not start yet or is assigned."""
    query = select(*_COLUMNS).where(JobRow.id == job_id, job_queue.is_queued())
    row = (await session.execute(query)).first()
    return None if row is None else _to_job(row)


def to_queued_job(row: JobRow) -> QueuedJob:
    """Returns the properties of a queued job that decide when and where it starts."""
    columns = {column.key: getattr(row, column.key, None) for column in _COLUMNS}
    limits = {name: row.limits.get(name) for name in ("wall_seconds", "grace_seconds")}
    return _to_job(SimpleNamespace(**{**columns, **limits})).job
