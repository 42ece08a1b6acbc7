"""Thresholds of projects: listed, declared, removed."""

from collections.abc import Sequence
from typing import Final

from app.db.engine import Session
from app.db.models.summaries import ThresholdRow
from app.db.repositories import projects as project_rows
from app.db.repositories import stale_summaries
from app.db.repositories import thresholds as rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.projects.projects import find
from app.services.views.columns import build_view
from palestra.contract.permissions import Permission
from palestra.contract.thresholds import ThresholdDirection, ThresholdRequest, ThresholdView
from palestra.contract.views import Page

MAX_THRESHOLDS: Final = 50
"""Thresholds of a project."""


async def list_thresholds(session: Session, principal: Principal, slug: str) -> Page[ThresholdView]:
    """Returns the thresholds of a project by name.

    Raises:
        NotFoundError: If the project does not exist for the caller.
    """
    project = await find(session, principal, slug)
    found = await rows.list_of_project(session, project.id)
    return Page(items=await _build_views(session, project.id, found), next_cursor=None)


async def declare(
    session: Session, principal: Principal, slug: str, name: str, request: ThresholdRequest
) -> ThresholdView:
    """Declares a threshold, or replaces the one of that name.

    The curves of the runs that have the series are compared with it by the summariser; the same
    request again changes nothing.

    Raises:
        NotFoundError: If the project does not exist for the caller.
        ForbiddenError: If the caller may not change the project's settings.
        ConflictError: `too_many_thresholds`.
    """
    project = await find(session, principal, slug, Permission.PROJECT_SETTINGS)
    await project_rows.lock(session, project.id)
    present = {row.name: row for row in await rows.list_of_project(session, project.id)}
    known = present.get(name)
    if known is not None and _read(known) == request:
        (view,) = await _build_views(session, project.id, [known])
        return view
    if known is None and len(present) >= MAX_THRESHOLDS:
        raise ConflictError(
            "too_many_thresholds",
            f"The project has {MAX_THRESHOLDS} thresholds, which is the most. Remove one that is "
            "not used.",
        )
    if known is not None:
        await rows.remove(session, known.id)
    made = await rows.insert(
        session,
        {
            "project_id": project.id,
            "name": name,
            "series": request.series,
            "value": request.value,
            "is_at_least": request.direction is ThresholdDirection.AT_LEAST,
        },
    )
    await stale_summaries.mark_for_threshold(session, project.id, request.series)
    action = "threshold.create" if known is None else "threshold.update"
    _record(session, principal, action, made)
    (view,) = await _build_views(session, project.id, [made])
    return view


async def remove(session: Session, principal: Principal, slug: str, name: str) -> None:
    """Removes a threshold and what is kept of its crossings.

    Raises:
        NotFoundError: If the project does not exist for the caller, or has no such threshold.
        ForbiddenError: If the caller may not change the project's settings.
    """
    project = await find(session, principal, slug, Permission.PROJECT_SETTINGS)
    await project_rows.lock(session, project.id)
    present = {row.name: row for row in await rows.list_of_project(session, project.id)}
    known = present.get(name)
    if known is None:
        raise NotFoundError("threshold of this project")
    await rows.remove(session, known.id)
    _record(session, principal, "threshold.delete", known)


def _read(row: ThresholdRow) -> ThresholdRequest:
    direction = ThresholdDirection.AT_LEAST if row.is_at_least else ThresholdDirection.AT_MOST
    return ThresholdRequest(series=row.series, value=row.value, direction=direction)


async def _build_views(
    session: Session, project_id: str, found: Sequence[ThresholdRow]
) -> list[ThresholdView]:
    counts = await rows.count_runs(session, [row.id for row in found])
    pending = await stale_summaries.count_stale(session, project_id) if found else 0
    return [
        build_view(
            ThresholdView,
            row,
            direction=_read(row).direction,
            runs=counts.get(row.id, 0),
            pending_runs=pending,
        )
        for row in found
    ]


def _record(session: Session, principal: Principal, action: str, row: ThresholdRow) -> None:
    audit_log.record(
        session,
        action,
        row.name,
        project_id=row.project_id,
        actor=describe_actor(principal),
        data={
            "series": row.series, "value": row.value, "direction": _read(row).direction.value
        },
    )  # fmt: skip
