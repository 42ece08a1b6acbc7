"""People, for administrators of the server."""

from typing import Annotated

from fastapi import Depends, Query

from app.api.auth import UserManager
from app.api.deps import ReadSession, ServerUrl, SettingsDep, WriteSession
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.domain.paging import PageRequest
from app.services import user_removal
from app.services.access import users
from app.services.access.users import UserFilter
from palestra.contract.people import (
    DisableRequest,
    LoginLinkView,
    SignedOut,
    UserChange,
    UserDeleted,
    UserDetail,
    UserDisabled,
    UserState,
    UserView,
)
from palestra.contract.views import Page

router = ResourceRouter(prefix="/users", tags=["people"])

UserPage = Annotated[PageRequest, Depends(declare_page_request("name", ("name", "created_at")))]


@router.get("")
async def list_users(
    principal: UserManager,
    session: ReadSession,
    page: UserPage,
    text: Annotated[
        str | None, Query(max_length=200, description="Part of a name or e-mail address.")
    ] = None,
    state: UserState | None = None,
) -> Page[UserView]:
    """Lists the people of the server, page by page; service accounts are left out."""
    wanted = UserFilter(text=text, disabled=None if state is None else state == "disabled")
    return await users.list_users(session, principal, wanted, page)


@router.get("/{user_id}")
async def get_user(user_id: str, principal: UserManager, session: ReadSession) -> UserDetail:
    """Returns a person, by ID or login name, with the numbers of objects that the person owns."""
    return await users.get(session, principal, user_id)


@router.patch("/{user_id}", responses={409: {}})
async def change_user(
    user_id: str,
    principal: UserManager,
    body: Annotated[UserChange, Depends(JsonBody(UserChange, limit=TINY))],
    session: WriteSession,
) -> UserDetail:
    """Changes display name, e-mail address, and whether a person administers the server."""
    return await users.change(session, principal, user_id, body)


@router.post("/{user_id}:disable", responses={409: {}})
async def disable_user(
    user_id: str,
    principal: UserManager,
    body: Annotated[DisableRequest, Depends(JsonBody(DisableRequest, limit=TINY, required=False))],
    session: WriteSession,
) -> UserDisabled:
    """Ends a person's logins, tokens and streams at once.

    Workers and running attempts go on; `jobs` decides what becomes of the person's jobs.
    """
    return await user_removal.disable(session, principal, user_id, body)


@router.post("/{user_id}:enable")
async def enable_user(user_id: str, principal: UserManager, session: WriteSession) -> UserDetail:
    """Lets a disabled person log in again."""
    return await users.enable(session, principal, user_id)


@router.post("/{user_id}:reset-password", responses={409: {}})
async def reset_password(
    user_id: str,
    principal: UserManager,
    session: WriteSession,
    settings: SettingsDep,
    server_url: ServerUrl,
) -> LoginLinkView:
    """Creates a link with which a person sets a new password; only this answer holds the link."""
    seconds = settings.link_seconds
    return await users.reset_password(session, principal, user_id, seconds, server_url)


@router.post("/{user_id}:sign-out")
async def sign_out_user(user_id: str, principal: UserManager, session: WriteSession) -> SignedOut:
    """Ends all browser logins of a person; tokens stay."""
    return await users.sign_out(session, principal, user_id)


@router.delete("/{user_id}", responses={409: {}})
async def delete_user(
    user_id: str,
    principal: UserManager,
    session: WriteSession,
    transfer_to: Annotated[
        str | None, Query(max_length=64, description="Who gets what the person owns.")
    ] = None,
) -> UserDeleted:
    """Deletes a person; what the person owns is transferred."""
    return await user_removal.delete(session, principal, user_id, transfer_to)
