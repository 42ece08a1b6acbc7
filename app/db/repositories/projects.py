"""Rows of projects and of their members."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import JobRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories.keyset_pages import select_page
from app.db.upsert import insert_new
from app.domain.paging import Keyset
from palestra.contract.permissions import Role

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "name": ProjectRow.name,
    "created_at": ProjectRow.created_at,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of a project's members, experiments, runs and jobs, and its stored bytes."""

    members: int = 0
    experiments: int = 0
    runs: int = 0
    jobs: int = 0


async def insert(session: Session, values: Mapping[str, Any]) -> bool:
    """Inserts a project; returns false if its name or its slug is taken."""
    statement = insert_new(session, ProjectRow, [dict(values)]).returning(ProjectRow.id)
    return (await session.execute(statement)).one_or_none() is not None


async def find_by_slug(session: Session, slug: str) -> ProjectRow | None:
    """Returns the project of that slug that is not deleted."""
    query = select(ProjectRow).where(ProjectRow.slug == slug, ProjectRow.deleted_at.is_(None))
    return await session.scalar(query.execution_options(populate_existing=True))


async def load_by_id(session: Session, project_id: str) -> ProjectRow:
    """Returns a project that exists."""
    query = select(ProjectRow).where(ProjectRow.id == project_id)
    return (await session.scalars(query)).one()


async def list_by_ids(session: Session, project_ids: Collection[str]) -> Sequence[ProjectRow]:
    """Returns some projects by slug, without deleted ones."""
    query = select(ProjectRow).where(
        ProjectRow.id.in_(project_ids), ProjectRow.deleted_at.is_(None)
    )
    return (await session.scalars(query.order_by(ProjectRow.slug))).all()


async def lock(session: Session, project_id: str) -> None:
    """Locks a project's row until the transaction ends: changes of its members follow in turn."""
    await session.execute(
        select(ProjectRow.id).where(ProjectRow.id == project_id).with_for_update()
    )


async def is_slug_taken(session: Session, slug: str) -> bool:
    """Returns whether a project has the slug, deleted ones included."""
    return await session.scalar(select(ProjectRow.id).where(ProjectRow.slug == slug)) is not None


async def list_page(
    session: Session, project_ids: Collection[str] | None, keys: Keyset
) -> Sequence[ProjectRow]:
    """Returns a page of projects that are not deleted, and one row more; `None` for all."""
    query = select(ProjectRow).where(ProjectRow.deleted_at.is_(None))
    if project_ids is not None:
        query = query.where(ProjectRow.id.in_(project_ids))
    return (await session.scalars(select_page(query, keys, COLUMNS, ProjectRow.id))).all()


async def change(session: Session, project_id: str, values: Mapping[str, Any]) -> bool:
    """Sets columns of a project; returns false if another project has the name."""
    try:
        async with session.begin_nested():
            await session.execute(
                update(ProjectRow).where(ProjectRow.id == project_id).values(**values)
            )
    except IntegrityError:
        return False
    return True


async def set_archived(session: Session, project_id: str, *, archived: bool) -> bool:
    """Archives or restores a project; returns false if it already had that state."""
    was = ProjectRow.archived_at.is_(None) if archived else ProjectRow.archived_at.is_not(None)
    statement = (
        update(ProjectRow)
        .where(ProjectRow.id == project_id, was)
        .values(archived_at=db_now() if archived else None)
        .returning(ProjectRow.id)
    )
    return await session.scalar(statement) is not None


async def load_counts(session: Session, project_ids: Collection[str]) -> dict[str, Counts]:
    """Returns the `Counts` of projects, by ID; an index of each table serves its count."""
    found: dict[str, dict[str, int]] = {project_id: {} for project_id in project_ids}
    counted = {
        "members": (MembershipRow.project_id, func.count()),
        "experiments": (ExperimentRow.project_id, func.count()),
        "runs": (RunRow.project_id, func.count()),
        "jobs": (JobRow.project_id, func.count()),
    }
    for name, (owner, value) in counted.items():
        query = select(owner, value).where(owner.in_(project_ids)).group_by(owner)
        for project_id, number in await session.execute(query):
            found[project_id][name] = int(number)
    return {project_id: Counts(**numbers) for project_id, numbers in found.items()}


async def lock_for_storage(session: Session, project_ids: Collection[str]) -> dict[str, ProjectRow]:
    """Locks projects until the transaction ends; returns them by ID.

    A transaction that changes storage counters locks the projects before any blob, so that two such
    transactions do not wait for each other. Rows that refer to the projects can be written
    meanwhile.
    """
    query = select(ProjectRow).where(ProjectRow.id.in_(project_ids)).order_by(ProjectRow.id)
    query = query.with_for_update(key_share=True).execution_options(populate_existing=True)
    return {row.id: row for row in await session.scalars(query)}


async def add_storage(session: Session, project_id: str, size: int) -> None:
    """Adds bytes to the storage that a project uses; a negative number is subtracted."""
    used = ProjectRow.storage_used + size
    statement = update(ProjectRow).where(ProjectRow.id == project_id).values(storage_used=used)
    await session.execute(statement.execution_options(synchronize_session=False))


async def read_storage(session: Session, project_id: str) -> tuple[str, int, int | None]:
    """Returns the slug of a project, the bytes that it stores, and its limit."""
    columns = (ProjectRow.slug, ProjectRow.storage_used, ProjectRow.storage_limit)
    query = select(*columns).where(ProjectRow.id == project_id)
    slug, used, limit = (await session.execute(query)).one()
    return slug, used, limit


async def list_members(
    session: Session, project_id: str, user_id: str | None = None
) -> list[tuple[MembershipRow, UserRow]]:
    """Returns the members of a project by login name, or one of them."""
    query = (
        select(MembershipRow, UserRow)
        .join(UserRow, UserRow.id == MembershipRow.user_id)
        .where(MembershipRow.project_id == project_id)
        .order_by(UserRow.name)
        .execution_options(populate_existing=True)
    )
    if user_id is not None:
        query = query.where(UserRow.id == user_id)
    return [(membership, user) for membership, user in await session.execute(query)]


async def has_other_maintainer(session: Session, project_id: str, user_id: str) -> bool:
    """Returns whether a person other than this user can act as a maintainer of the project."""
    query = (
        select(UserRow.id)
        .join(MembershipRow, MembershipRow.user_id == UserRow.id)
        .where(
            MembershipRow.project_id == project_id,
            MembershipRow.role == Role.MAINTAINER,
            UserRow.id != user_id,
            UserRow.disabled_at.is_(None),
            UserRow.service_project_id.is_(None),
        )
        .limit(1)
    )
    return await session.scalar(query) is not None
