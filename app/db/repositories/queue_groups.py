"""Groups of queued jobs: the persons with queued jobs in a project, a pool and a priority class."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, delete, exists, select, tuple_

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow
from app.db.models.usage import QueueGroupRow
from app.db.repositories.dependencies import has_none_open
from app.db.repositories.job_queue import is_queued
from app.db.upsert import insert_or_update
from app.domain.queue.start_order import Group
from palestra.contract.names import PriorityClass

_KEY_COLUMNS: Final = (
    QueueGroupRow.priority_class,
    QueueGroupRow.project_id,
    QueueGroupRow.user_id,
)
GROUP_KEY: Final = tuple_(*_KEY_COLUMNS)
"""Identifies a group of a pool."""


async def join_group(session: Session, jobs: Collection[JobRow]) -> None:
    """Inserts or updates the queue groups of the given queued jobs."""
    groups = {
        (job.pool, job.priority_class, job.project_id, job.created_by)
        for job in jobs
        if not job.open_dependencies
    }
    names = ("pool", "priority_class", "project_id", "user_id")
    rows = [dict(zip(names, group, strict=True)) for group in sorted(groups)]
    if rows:
        await session.execute(
            insert_or_update(session, QueueGroupRow, rows, {"queued_at": db_now()})
        )


async def lock_group(session: Session, job: JobRow) -> None:
    """Locks the row of a job's group until the transaction ends, if it has one."""
    await session.execute(
        select(QueueGroupRow.pool)
        .where(
            QueueGroupRow.pool == job.pool,
            QueueGroupRow.priority_class == job.priority_class,
            QueueGroupRow.project_id == job.project_id,
            QueueGroupRow.user_id == job.created_by,
        )
        .with_for_update()
    )


async def filter_empty_groups(
    session: Session, pool: str, groups: Collection[Group]
) -> tuple[Group, ...]:
    """Returns which groups have no queued job, not even one whose delay is not over.

    Jobs that wait for the end of others do not count: they join their group afterwards.
    """
    if not groups:
        return ()
    mine = (*matches_row(), is_queued(), has_none_open())
    has_jobs = exists().where(*mine).correlate(QueueGroupRow)
    query = select_groups().where(GROUP_KEY.in_(bindparam("groups", expanding=True)), ~has_jobs)
    rows = (await session.execute(query, {"pool": pool, "groups": build_keys(groups)})).all()
    return tuple(Group(*row[:3]) for row in rows)


async def drop_empty_groups(session: Session, pool: str, groups: Collection[Group]) -> None:
    """Deletes groups without queued jobs; one in which a job was queued meanwhile stays.

    The rows are locked before their jobs are looked for, so a concurrent `join_group` waits, and
    inserts the row again after this transaction.
    """
    if not groups:
        return
    mine = (QueueGroupRow.pool == pool, GROUP_KEY.in_(build_keys(groups)))
    await session.execute(
        select(QueueGroupRow.pool).where(*mine).order_by(*_KEY_COLUMNS).with_for_update()
    )
    empty = await filter_empty_groups(session, pool, groups)
    await session.execute(
        delete(QueueGroupRow)
        .where(QueueGroupRow.pool == pool, GROUP_KEY.in_(build_keys(empty)))
        .execution_options(synchronize_session=False)
    )


async def list_open_pools(session: Session) -> Sequence[str]:
    """Returns the names of the pools in which jobs may be queued, without paused ones."""
    return [pool for (pool,) in await session.execute(_select_open_pools())]


@cache
def _select_open_pools() -> Any:
    has_groups = exists().where(QueueGroupRow.pool == PoolRow.name)
    return (
        select(PoolRow.name).where(PoolRow.paused_at.is_(None), has_groups).order_by(PoolRow.name)
    )


async def list_groups(session: Session, pool: str) -> dict[Group, datetime]:
    """Returns the groups that may have queued jobs in a pool, and since when each waits."""
    return {
        Group(*key): waiting_since
        for *key, waiting_since in await session.execute(select_groups(), {"pool": pool})
    }


@cache
def select_groups() -> Any:
    """Builds the statement of `list_groups`."""
    return select(*_KEY_COLUMNS, QueueGroupRow.waiting_since).where(
        QueueGroupRow.pool == bindparam("pool")
    )


def matches_row() -> tuple[ColumnElement[bool], ...]:
    """The conditions that a job belongs to the group of a row."""
    return (
        JobRow.pool == QueueGroupRow.pool,
        JobRow.priority_class == QueueGroupRow.priority_class,
        JobRow.project_id == QueueGroupRow.project_id,
        JobRow.created_by == QueueGroupRow.user_id,
    )


def build_keys(groups: Collection[Group]) -> list[tuple[PriorityClass, str, str]]:
    """Returns groups as values of `GROUP_KEY`."""
    return [(group.priority_class, group.project_id, group.user_id) for group in groups]
