"""Rows of deleted projects, and the jobs that are to end with them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.projects import ProjectRow
from app.db.repositories.keyset_pages import select_page
from app.domain.paging import Keyset
from palestra.contract.states import FINAL_JOB_STATES, LIVE_ATTEMPT_STATES, JobState

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "deleted_at": ProjectRow.deleted_at,
    "name": ProjectRow.name,
}
_TO_CANCEL: Final = (
    JobState.QUEUED,
    JobState.STARTING,
    JobState.RUNNING,
    JobState.PAUSING,
    JobState.PAUSED,
    JobState.PREEMPTING,
)


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


async def find_by_slug(session: Session, slug: str) -> ProjectRow | None:
    """Returns the deleted project of that slug; `None` if there is none."""
    query = select(ProjectRow).where(ProjectRow.slug == slug, ProjectRow.deleted_at.is_not(None))
    return await session.scalar(query.execution_options(populate_existing=True))


async def list_page(session: Session, keys: Keyset) -> Sequence[ProjectRow]:
    """Returns a page of deleted projects and one row more."""
    query = select(ProjectRow).where(ProjectRow.deleted_at.is_not(None))
    return (await session.scalars(select_page(query, keys, COLUMNS, ProjectRow.id))).all()


async def is_deleted(session: Session, project_id: str) -> bool:
    """Returns whether a project is deleted."""
    deleted = (ProjectRow.id == project_id, ProjectRow.deleted_at.is_not(None))
    return await session.scalar(select(ProjectRow.id).where(*deleted)) is not None


async def is_being_removed(session: Session, project_id: str) -> bool:
    """Returns whether the content of a project is being removed."""
    started = (ProjectRow.id == project_id, ProjectRow.removal_started_at.is_not(None))
    return await session.scalar(select(ProjectRow.id).where(*started)) is not None


async def list_due(session: Session) -> Sequence[str]:
    """Returns the IDs of deleted projects that have jobs to cancel or whose removal is due.

    The oldest deletion is first.
    """
    jobs = exists().where(JobRow.project_id == ProjectRow.id, JobRow.state.in_(_TO_CANCEL))
    query = select(ProjectRow.id).where(
        ProjectRow.deleted_at.is_not(None), or_(ProjectRow.restorable_until <= db_now(), jobs)
    )
    return (await session.scalars(query.order_by(ProjectRow.deleted_at, ProjectRow.id))).all()


async def start_removal(session: Session, project_id: str) -> bool:
    """Marks a deleted project as being removed; returns false while it can be restored.

    For a project that is being removed already, it returns true.
    """
    due = (
        ProjectRow.id == project_id,
        ProjectRow.deleted_at.is_not(None),
        ProjectRow.restorable_until <= db_now(),
    )
    at = func.coalesce(ProjectRow.removal_started_at, db_now())
    statement = update(ProjectRow).where(*due).values(removal_started_at=at)
    statement = statement.execution_options(synchronize_session=False)
    return await session.scalar(statement.returning(ProjectRow.id)) is not None


async def lock_removal(session: Session, project_id: str) -> ProjectRow | None:
    """Returns a project that is being removed, locked; `None` if another process works on it."""
    query = (
        select(ProjectRow)
        .where(ProjectRow.id == project_id, ProjectRow.removal_started_at.is_not(None))
        .with_for_update(skip_locked=True, key_share=True)
    )
    return await session.scalar(query)


async def list_live_attempts(session: Session, project_id: str, limit: int) -> Sequence[str]:
    """Returns the IDs of attempts of a project that have not ended."""
    live = (AttemptRow.project_id == project_id, AttemptRow.state.in_(LIVE_ATTEMPT_STATES))
    return (await session.scalars(select(AttemptRow.id).where(*live).limit(limit))).all()


async def count_unfinished_jobs(session: Session, project_ids: Sequence[str]) -> dict[str, int]:
    """Returns how many jobs of each given project have not ended."""
    query = (
        select(JobRow.project_id, func.count())
        .where(JobRow.project_id.in_(project_ids), JobRow.state.not_in(FINAL_JOB_STATES))
        .group_by(JobRow.project_id)
    )
    return dict((await session.execute(query)).all())


async def list_jobs_to_cancel(session: Session, project_id: str, limit: int) -> Sequence[JobRow]:
    """Returns, locked, jobs of a project that were not cancelled yet."""
    query = (
        select(JobRow)
        .where(JobRow.project_id == project_id, JobRow.state.in_(_TO_CANCEL))
        .order_by(JobRow.id)
        .limit(limit)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query)).all()
