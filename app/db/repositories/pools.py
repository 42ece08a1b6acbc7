"""Rows of pools, of the projects that they admit, and of their enrolment tokens."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import EnrolmentTokenRow, PoolRow, ProjectPoolRow
from app.db.models.projects import ProjectRow
from app.db.models.workers import WorkerRow
from app.db.upsert import insert_new
from palestra.contract.states import FINAL_JOB_STATES


async def insert(session: Session, values: Mapping[str, Any]) -> bool:
    """Inserts a pool; returns false if its name is taken."""
    statement = insert_new(session, PoolRow, [dict(values)]).returning(PoolRow.id)
    return (await session.execute(statement)).one_or_none() is not None


async def find_by_name(session: Session, name: str, *, lock: bool = False) -> PoolRow | None:
    """Returns the pool of that name, locked until the transaction ends if asked."""
    query = select(PoolRow).where(PoolRow.name == name).execution_options(populate_existing=True)
    return await session.scalar(query.with_for_update() if lock else query)


async def hold_by_name(session: Session, name: str) -> PoolRow | None:
    """Returns the pool of that name, locked so that it is not changed before the commit."""
    query = select(PoolRow).where(PoolRow.name == name).execution_options(populate_existing=True)
    return await session.scalar(query.with_for_update(read=True))


async def list_names(session: Session) -> list[str]:
    """Returns the names of all pools."""
    return list(await session.scalars(select(PoolRow.name).order_by(PoolRow.name)))


async def list_by_names(session: Session, wanted: Collection[str] | None) -> Sequence[PoolRow]:
    """Returns the pools with the given names, or all pools, ordered by name."""
    query = select(PoolRow).order_by(PoolRow.name).execution_options(populate_existing=True)
    if wanted is not None:
        query = query.where(PoolRow.name.in_(wanted))
    return (await session.scalars(query)).all()


async def list_names_for_projects(session: Session, project_ids: Collection[str]) -> set[str]:
    """Returns the names of the pools that admit one of the given projects."""
    query = (
        select(PoolRow.name)
        .join(ProjectPoolRow, ProjectPoolRow.pool_id == PoolRow.id)
        .where(ProjectPoolRow.project_id.in_(project_ids))
    )
    return set(await session.scalars(query.distinct()))


async def admits(session: Session, pool_id: str, project_id: str) -> bool:
    """Returns whether a pool admits a project."""
    return await session.get(ProjectPoolRow, (project_id, pool_id), populate_existing=True) is not (
        None
    )


def is_admitted() -> ColumnElement[bool]:
    """The condition that the pool of a job admits its project."""
    return (
        exists()
        .where(
            PoolRow.name == JobRow.pool,
            ProjectPoolRow.pool_id == PoolRow.id,
            ProjectPoolRow.project_id == JobRow.project_id,
        )
        .correlate(JobRow)
    )


def is_open() -> ColumnElement[bool]:
    """The condition that the pool of a job is not paused."""
    is_paused = exists().where(PoolRow.name == JobRow.pool, PoolRow.paused_at.is_not(None))
    return ~is_paused.correlate(JobRow)


async def list_admissions(
    session: Session, pool_ids: Collection[str]
) -> Sequence[tuple[ProjectPoolRow, ProjectRow]]:
    """Returns the projects that the given pools admit, without deleted ones, by slug."""
    query = (
        select(ProjectPoolRow, ProjectRow)
        .join(ProjectRow, ProjectRow.id == ProjectPoolRow.project_id)
        .where(ProjectPoolRow.pool_id.in_(pool_ids), ProjectRow.deleted_at.is_(None))
        .order_by(ProjectRow.slug)
        .execution_options(populate_existing=True)
    )
    return [(admission, project) for admission, project in await session.execute(query)]


async def load_names_by_project(session: Session) -> dict[str, frozenset[str]]:
    """Returns the names of the pools that admit each project, by its ID."""
    query = select(ProjectPoolRow.project_id, PoolRow.name).join(
        PoolRow, PoolRow.id == ProjectPoolRow.pool_id
    )
    found: dict[str, set[str]] = {}
    for project_id, name in await session.execute(query):
        found.setdefault(project_id, set()).add(name)
    return {project_id: frozenset(names) for project_id, names in found.items()}


async def list_admitted_pairs(session: Session, pools: Collection[str]) -> set[tuple[str, str]]:
    """Returns the pairs of pool name and project ID that are admitted."""
    query = (
        select(PoolRow.name, ProjectPoolRow.project_id)
        .join(ProjectPoolRow, ProjectPoolRow.pool_id == PoolRow.id)
        .where(PoolRow.name.in_(pools))
    )
    return {(pool, project_id) for pool, project_id in await session.execute(query)}


async def admit(
    session: Session, pool_id: str, project_id: str, share: float | None = None
) -> bool:
    """Admits a project to a pool, or changes its share; returns whether anything changed."""
    row = {"pool_id": pool_id, "project_id": project_id, "share": 1.0 if share is None else share}
    statement = insert_new(session, ProjectPoolRow, [row]).returning(ProjectPoolRow.project_id)
    if (await session.execute(statement)).one_or_none() is not None:
        return True
    if share is None:
        return False
    mine = ProjectPoolRow.pool_id == pool_id, ProjectPoolRow.project_id == project_id
    change = (
        update(ProjectPoolRow)
        .where(*mine, ProjectPoolRow.share != share)
        .values(share=share)
        .returning(ProjectPoolRow.project_id)
        .execution_options(synchronize_session=False)
    )
    return await session.scalar(change) is not None


async def remove(session: Session, pool_id: str, project_id: str) -> bool:
    """Ends the admission of a project; returns false if there was none."""
    statement = (
        delete(ProjectPoolRow)
        .where(ProjectPoolRow.pool_id == pool_id, ProjectPoolRow.project_id == project_id)
        .returning(ProjectPoolRow.project_id)
        .execution_options(synchronize_session=False)
    )
    return await session.scalar(statement) is not None


async def change(session: Session, pool: PoolRow, values: Mapping[str, Any]) -> None:
    """Sets columns of a pool."""
    await session.execute(
        update(PoolRow)
        .where(PoolRow.id == pool.id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(pool)


async def pause(session: Session, pool: PoolRow, reason: str) -> None:
    """Stores since when and why a pool is paused; a second pause changes the reason alone."""
    await change(
        session,
        pool,
        {"paused_at": func.coalesce(PoolRow.paused_at, db_now()), "pause_reason": reason},
    )


async def count_unfinished_jobs(session: Session, pool: str) -> int:
    """Returns how many jobs of a pool have not ended, of all projects."""
    query = select(func.count()).select_from(JobRow).where(JobRow.pool == pool)
    return (await session.scalar(query.where(JobRow.state.not_in(FINAL_JOB_STATES)))) or 0


async def delete_pool(session: Session, pool: PoolRow) -> None:
    """Deletes a pool with its admissions and tokens; its workers then belong to no pool."""
    await session.execute(
        update(WorkerRow)
        .where(WorkerRow.pool == pool.name)
        .values(
            pool="",
            secret_hash=None,
            next_secret_hash=None,
            rotation_nonce=None,
            broker_password_hash=None,
        )
        .execution_options(synchronize_session=False)
    )
    await session.execute(
        delete(PoolRow).where(PoolRow.id == pool.id).execution_options(synchronize_session=False)
    )


async def is_empty(session: Session) -> bool:
    """Returns whether there is no pool at all."""
    return await session.scalar(select(PoolRow.id).limit(1)) is None


async def insert_token(
    session: Session, values: Mapping[str, Any], days: int | None
) -> EnrolmentTokenRow:
    """Adds an enrolment token that expires after `days`; `None`: never."""
    token = EnrolmentTokenRow(**values, expires_at=None if days is None else db_now(days * 86_400))
    session.add(token)
    await session.flush()
    await session.refresh(token)
    return token


async def list_tokens(session: Session, pool_id: str) -> Sequence[EnrolmentTokenRow]:
    """Returns the enrolment tokens of a pool that are not revoked, oldest first."""
    query = select(EnrolmentTokenRow).where(
        EnrolmentTokenRow.pool_id == pool_id, EnrolmentTokenRow.revoked_at.is_(None)
    )
    query = query.order_by(EnrolmentTokenRow.created_at, EnrolmentTokenRow.id)
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def use_token(session: Session, token_id: str) -> str | None:
    """Stores when an enrolment token was used; returns the ID of the user who made it."""
    statement = (
        update(EnrolmentTokenRow)
        .where(EnrolmentTokenRow.id == token_id)
        .values(last_used_at=db_now())
        .returning(EnrolmentTokenRow.created_by)
        .execution_options(synchronize_session=False)
    )
    return await session.scalar(statement)


async def revoke_token(session: Session, pool_id: str, token_id: str) -> str | None:
    """Revokes an enrolment token of a pool; returns its name, `None` if there is none."""
    statement = (
        update(EnrolmentTokenRow)
        .where(
            EnrolmentTokenRow.id == token_id,
            EnrolmentTokenRow.pool_id == pool_id,
            EnrolmentTokenRow.revoked_at.is_(None),
        )
        .values(revoked_at=db_now())
        .returning(EnrolmentTokenRow.name)
        .execution_options(synchronize_session=False)
    )
    return await session.scalar(statement)
