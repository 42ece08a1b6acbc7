"""Saved views of the page of runs."""

from typing import Annotated

from fastapi import Depends, Path

from app.api.auth import Controller, LimitedToProject, Reader, Submitter
from app.api.deps import ReadSession, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.domain.paging import PageRequest
from app.services.lists import saved_views
from palestra.contract.saved_views import (
    SavedViewChange,
    SavedViewDetail,
    SavedViewRequest,
    SavedViewView,
)
from palestra.contract.views import Page

router = ResourceRouter(prefix="/views", tags=["views"])
limited_router = ResourceRouter(prefix="/views", tags=["views"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

ViewPage = Annotated[
    PageRequest, Depends(declare_page_request("name", ("name", "created_at", "updated_at")))
]
ViewId = Annotated[str, Path(max_length=64, description="ID of a view.")]


@limited_router.get("")
async def list_views(
    principal: Reader, session: ReadSession, page: ViewPage
) -> Page[SavedViewView]:
    """Lists the caller's own views, and those that others share with the project."""
    return await saved_views.list_views(session, principal, page)


@limited_router.post("", status_code=201, responses={409: {}})
async def save_view(
    principal: Submitter,
    body: Annotated[SavedViewRequest, Depends(JsonBody(SavedViewRequest))],
    session: WriteSession,
) -> SavedViewDetail:
    """Saves what the page of runs shows, for the caller or for all members of the project."""
    return await saved_views.create(session, principal, body)


@router.get("/{view_id}")
async def get_view(view_id: ViewId, principal: Reader, session: ReadSession) -> SavedViewDetail:
    """Returns a view, and what of it can still be shown.

    Terms and keys that name what no longer exists are left out of `usable_state`; `problems` says
    which, each with the nearest name.
    """
    return await saved_views.get(session, principal, view_id)


@router.patch("/{view_id}", responses={409: {}})
async def change_view(
    view_id: ViewId,
    principal: Controller,
    body: Annotated[SavedViewChange, Depends(JsonBody(SavedViewChange))],
    session: WriteSession,
) -> SavedViewDetail:
    """Changes name, visibility or state of a view, for its owner and maintainers of its project."""
    return await saved_views.change(session, principal, view_id, body)


@router.delete("/{view_id}", status_code=204)
async def delete_view(view_id: ViewId, principal: Controller, session: WriteSession) -> None:
    """Deletes a view, for its owner and maintainers of its project."""
    await saved_views.delete(session, principal, view_id)
