"""Saved views: lists, reads, saves, changes and deletes them."""

from collections.abc import Sequence
from typing import Any, Final

from app.db.engine import Session
from app.db.models.saved_views import SavedViewRow
from app.db.repositories import access as access_rows
from app.db.repositories import saved_views as rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.lists import view_state
from app.services.views import pages
from app.services.views.login_names import load_login_names
from palestra.contract.documents import encode_canonical_json
from palestra.contract.names import new_id
from palestra.contract.saved_views import (
    RunsPageState,
    SavedViewChange,
    SavedViewDetail,
    SavedViewRequest,
    SavedViewView,
)
from palestra.contract.views import Page

MAX_VIEWS: Final = 200
"""Views of one person in one project."""


async def list_views(
    session: Session, principal: Principal, request: PageRequest
) -> Page[SavedViewView]:
    """Returns a page of the caller's own views and of those shared with the caller's projects."""
    keys = build_keyset(request, rows.COLUMNS)
    found = await rows.list_page(session, principal.project_ids, principal.user_id, keys)
    return await pages.cut(found, request, keys, lambda shown: _build_views(session, shown))


async def get(session: Session, principal: Principal, view_id: str) -> SavedViewDetail:
    """Returns a view, and what of it can still be shown.

    Raises:
        NotFoundError: If the caller sees no view with that ID.
    """
    return await _detail(session, principal, await _find(session, principal, view_id))


async def create(
    session: Session, principal: Principal, request: SavedViewRequest
) -> SavedViewDetail:
    """Saves a view in the caller's one project.

    Raises:
        ForbiddenError: If the caller may not submit to the project, and so saves no views.
        InvalidError: If the state cannot be read; `project_needed` if several projects are meant.
        ConflictError: `name_taken`, or `too_many_views`.
    """
    view_state.check_state(request.state)
    project_id = rights.choose_project_to_submit_to(principal)
    if await rows.count_owned(session, project_id, principal.user_id) >= MAX_VIEWS:
        raise ConflictError(
            "too_many_views",
            f"You have {MAX_VIEWS} views in this project. Delete one that is no longer needed.",
        )
    view_id = new_id("viw")
    values = {
        "id": view_id,
        "project_id": project_id,
        "owner_id": principal.user_id,
        "name": request.name,
        "visibility": request.visibility,
        "state": request.state.model_dump(mode="json"),
    }
    if not await rows.insert(session, values):
        raise _name_taken()
    row = await _find(session, principal, view_id)
    _record(session, principal, "view.create", row)
    return await _detail(session, principal, row)


async def change(
    session: Session, principal: Principal, view_id: str, request: SavedViewChange
) -> SavedViewDetail:
    """Changes name, visibility or state of a view.

    Raises:
        NotFoundError: If the caller sees no view with that ID.
        ForbiddenError: Unless the caller owns the view or is a maintainer of its project.
        InvalidError: If the state cannot be read.
        ConflictError: `name_taken`.
    """
    row = await _find_to_control(session, principal, view_id)
    if request.state is not None:
        view_state.check_state(request.state)
    wanted = request.model_dump(mode="json", exclude_unset=True)
    values: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if values and not await rows.change(session, row.id, values):
        raise _name_taken()
    row = await _find(session, principal, view_id)
    _record(session, principal, "view.change", row)
    return await _detail(session, principal, row)


async def delete(session: Session, principal: Principal, view_id: str) -> None:
    """Deletes a view.

    Raises:
        NotFoundError: If the caller sees no view with that ID.
        ForbiddenError: Unless the caller owns the view or is a maintainer of its project.
    """
    row = await _find_to_control(session, principal, view_id)
    await rows.remove(session, row.id)
    _record(session, principal, "view.delete", row)


def _name_taken() -> ConflictError:
    return ConflictError(
        "name_taken",
        "The owner has another view of this name in the project. Choose another name, or change "
        "that view.",
        pointer="/name",
    )


async def _find(session: Session, principal: Principal, view_id: str) -> SavedViewRow:
    row = await rows.find(session, principal.project_ids, principal.user_id, view_id)
    if row is None:
        raise NotFoundError("view")
    return row


async def _find_to_control(session: Session, principal: Principal, view_id: str) -> SavedViewRow:
    row = await _find(session, principal, view_id)
    rights.require_control(principal, row.project_id, row.owner_id)
    return row


async def _build_views(session: Session, found: Sequence[SavedViewRow]) -> list[SavedViewView]:
    names = await load_login_names(session, {row.owner_id for row in found})
    slugs = await access_rows.load_project_slugs(session, {row.project_id for row in found})
    return [
        SavedViewView(
            id=row.id,
            project=slugs[row.project_id],
            name=row.name,
            owner=names[row.owner_id],
            visibility=row.visibility,
            state=RunsPageState.model_validate_json(encode_canonical_json(row.state)),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row in found
    ]


async def _detail(session: Session, principal: Principal, row: SavedViewRow) -> SavedViewDetail:
    (view,) = await _build_views(session, [row])
    within = rights.limit_to_project(principal, view.project)
    usable, problems = await view_state.find_usable_state(session, within, view.state)
    return SavedViewDetail(**dict(view), usable_state=usable, problems=problems)


def _record(session: Session, principal: Principal, action: str, row: SavedViewRow) -> None:
    audit_log.record(
        session,
        action,
        row.id,
        project_id=row.project_id,
        actor=describe_actor(principal),
        data={"name": row.name, "visibility": row.visibility},
    )
