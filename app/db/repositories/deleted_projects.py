"""Rows of deleted projects, and the jobs that are to end with them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.projects import ProjectRow
from app.db.repositories.jobs import FINAL
from app.db.repositories.keyset_pages import paged
from app.domain.paging import Keyset
from palestra.contract.states import JobState

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "deleted_at": ProjectRow.deleted_at,
    "name": ProjectRow.name,
}
_TO_CANCEL: Final = [
    state.value
    for state in (
        JobState.QUEUED,
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSING,
        JobState.PAUSED,
        JobState.PREEMPTING,
    )
]


async def mark(session: Session, project_id: str, user_id: str, restore_seconds: float) -> bool:
    """Marks a project as deleted; returns false if it is not archived, or deleted already."""
    archived = (ProjectRow.archived_at.is_not(None), ProjectRow.deleted_at.is_(None))
    values = {
        "deleted_at": db_now(),
        "deleted_by": user_id,
        "restorable_until": db_now(restore_seconds),
    }
    statement = (
        update(ProjectRow)
        .where(ProjectRow.id == project_id, *archived)
        .values(**values)
        .returning(ProjectRow.id)
    )
    return await session.scalar(statement) is not None


async def unmark(session: Session, project_id: str) -> bool:
    """Restores a deleted project; returns false if it can no longer be restored."""
    restorable = (
        ProjectRow.deleted_at.is_not(None),
        ProjectRow.removal_started_at.is_(None),
        ProjectRow.restorable_until > db_now(),
    )
    values = {"deleted_at": None, "deleted_by": None, "restorable_until": None}
    statement = (
        update(ProjectRow)
        .where(ProjectRow.id == project_id, *restorable)
        .values(**values)
        .returning(ProjectRow.id)
    )
    return await session.scalar(statement) is not None


async def by_slug(session: Session, slug: str) -> ProjectRow | None:
    """Returns the deleted project of that slug."""
    query = select(ProjectRow).where(ProjectRow.slug == slug, ProjectRow.deleted_at.is_not(None))
    return await session.scalar(query.execution_options(populate_existing=True))


async def page(session: Session, keys: Keyset) -> Sequence[ProjectRow]:
    """Returns a page of deleted projects and one row more."""
    query = select(ProjectRow).where(ProjectRow.deleted_at.is_not(None))
    return (await session.scalars(paged(query, keys, COLUMNS, ProjectRow.id))).all()


async def is_deleted(session: Session, project_id: str) -> bool:
    """Returns whether a project is deleted."""
    deleted = (ProjectRow.id == project_id, ProjectRow.deleted_at.is_not(None))
    return await session.scalar(select(ProjectRow.id).where(*deleted)) is not None


async def unfinished_jobs(session: Session, project_ids: Sequence[str]) -> dict[str, int]:
    """Returns how many jobs of each of some projects have not ended."""
    query = (
        select(JobRow.project_id, func.count())
        .where(JobRow.project_id.in_(project_ids), JobRow.state.not_in(FINAL))
        .group_by(JobRow.project_id)
    )
    return dict((await session.execute(query)).all())


async def jobs_to_cancel(session: Session, project_id: str, limit: int) -> Sequence[JobRow]:
    """Returns, locked, jobs of a project that were not told to end yet."""
    query = (
        select(JobRow)
        .where(JobRow.project_id == project_id, JobRow.state.in_(_TO_CANCEL))
        .order_by(JobRow.id)
        .limit(limit)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query)).all()
