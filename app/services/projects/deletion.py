"""Deletes and restores projects.

A deleted project is hidden and its jobs are cancelled. Its content stays until
`app.services.projects.removal` removes it.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import ProjectRow
from app.db.repositories import access as access_rows
from app.db.repositories import deleted_projects as rows
from app.db.repositories import projects as project_rows
from app.domain import transitions
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.jobs import job_state
from app.services.jobs.batch_time import take_in_time
from app.services.jobs.job_state import TransitionDetails
from app.services.projects import projects
from app.services.views import pages
from app.services.views.columns import build_view
from app.settings import Settings
from palestra.contract.permissions import Permission
from palestra.contract.projects import DeletedProjectView, ProjectView
from palestra.contract.states import Cause
from palestra.contract.views import Page

JOBS_AT_ONCE: Final = 100
"""Jobs that one transaction cancels; the daemon cancels those that are left."""
_DAY: Final = 86_400.0


async def delete(
    session: Session, principal: Principal, slug: str, confirm: str, settings: Settings
) -> DeletedProjectView:
    """Marks an archived project as deleted and cancels its jobs.

    Args:
        session: A writing session.
        principal: The caller.
        slug: Slug of the project.
        confirm: The same slug again.
        settings: Hold the number of days for which the project can be restored.

    Raises:
        NotFoundError: If the project does not exist for the caller, or is deleted already.
        ForbiddenError: If the caller may not change it.
        InvalidError: `confirmation_mismatch`.
        ConflictError: `project_not_archived`; `already_deleted` for administrators of the server.
    """
    try:
        project = await projects.find(session, principal, slug, Permission.PROJECT_SETTINGS)
    except NotFoundError:
        raise await _not_found(session, principal, slug) from None
    if confirm != project.slug:
        raise InvalidError(
            "confirmation_mismatch",
            "This is not the slug of the project. Type the slug exactly to confirm the deletion.",
            pointer="query/confirm",
        )
    seconds = settings.project_restore_days * _DAY
    if not await rows.mark(session, project.id, principal.user_id, seconds):
        raise ConflictError(
            "project_not_archived",
            "Only an archived project can be deleted. Archive it first.",
        )
    cancelled = await cancel_jobs(session, project.id, describe_actor(principal))
    deleted = await rows.find_by_slug(session, slug)
    assert deleted is not None
    _record(session, principal, "project.delete", deleted, cancelled_jobs=cancelled)
    announce(session, ACCESS)
    (view,) = await _views(session, [deleted])
    return view


async def _not_found(session: Session, principal: Principal, slug: str) -> Exception:
    is_manager = principal.permits(Permission.SERVER_PROJECTS)
    if not is_manager or await rows.find_by_slug(session, slug) is None:
        return NotFoundError("project")
    return ConflictError(
        "already_deleted",
        "This project is deleted already. `palestra projects deleted` says until when it can be "
        "restored.",
    )


async def cancel_jobs(session: Session, project_id: str, by: str) -> int:
    """Cancels up to 100 jobs of a deleted project, as time permits; returns the number of them.

    Running attempts receive the order with their next renewal.
    """
    details = TransitionDetails(actor=by, cause=Cause.USER, reason="The project was deleted.")
    found = await rows.list_jobs_to_cancel(session, project_id, JOBS_AT_ONCE)
    cancelled = 0
    for job in take_in_time(found):
        to = transitions.find_state_after_cancel(job.state)
        assert to is not None
        await job_state.move(session, job, to, details)
        cancelled += 1
    return cancelled


async def undelete(session: Session, principal: Principal, slug: str) -> ProjectView:
    """Restores a deleted project; it is archived, and its jobs stay cancelled.

    Raises:
        NotFoundError: If no project of that slug is deleted.
        ConflictError: `restore_window_over` or `removal_started`.
    """
    project = await _find(session, principal, slug)
    if not await rows.unmark(session, project.id):
        raise _too_late(await _find(session, principal, slug))
    _record(session, principal, "project.undelete", project)
    announce(session, ACCESS)
    return await projects.get(session, principal, slug)


def _too_late(project: ProjectRow) -> ConflictError:
    if project.removal_started_at is not None:
        return ConflictError(
            "removal_started",
            "The content of this project is being removed. It cannot be restored any more.",
        )
    return ConflictError(
        "restore_window_over",
        f"This project could be restored until {project.restorable_until:%Y-%m-%d %H:%M} UTC. Its "
        "content is removed now.",
    )


async def list_deleted(
    session: Session, principal: Principal, request: PageRequest
) -> Page[DeletedProjectView]:
    """Returns a page of deleted projects; nothing without the permission to manage projects."""
    keys = build_keyset(request, rows.COLUMNS)
    is_manager = principal.permits(Permission.SERVER_PROJECTS)
    found = await rows.list_page(session, keys) if is_manager else []
    return await pages.cut(found, request, keys, partial(_views, session))


async def _find(session: Session, principal: Principal, slug: str) -> ProjectRow:
    is_manager = principal.permits(Permission.SERVER_PROJECTS)
    project = await rows.find_by_slug(session, slug) if is_manager else None
    if project is None:
        raise NotFoundError("deleted project")
    return project


async def _views(session: Session, found: Sequence[ProjectRow]) -> list[DeletedProjectView]:
    ids = [project.id for project in found]
    counts = await project_rows.load_counts(session, ids)
    unfinished = await rows.count_unfinished_jobs(session, ids)
    users = await access_rows.load_user_names(session, {one.deleted_by or "" for one in found})
    return [
        build_view(
            DeletedProjectView,
            project,
            deleted_at=_moment(project.deleted_at),
            deleted_by=users.get(project.deleted_by or ""),
            restorable_until=_moment(project.restorable_until),
            unfinished_jobs=unfinished.get(project.id, 0),
            experiments=counts[project.id].experiments,
            runs=counts[project.id].runs,
            jobs=counts[project.id].jobs,
        )
        for project in found
    ]


def _moment(value: datetime | None) -> datetime:
    assert value is not None
    return value


def _record(
    session: Session, principal: Principal, action: str, project: ProjectRow, **data: Any
) -> None:
    audit_log.record(
        session,
        action,
        project.id,
        project_id=project.id,
        actor=describe_actor(principal),
        data={"slug": project.slug, "name": project.name, **data},
    )
