"""The caller's own account: profile, password and browser logins."""

from typing import Annotated

from fastapi import Depends, Request, Response

from app.api.auth import AccountOwner, Reader, forget_login
from app.api.deps import DatabaseDep, ReadSession, SettingsDep, WriteSession
from app.api.login_rate import count_guess
from app.api.origin import read_origin
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.domain.paging import PageRequest
from app.services import overview
from app.services.access import accounts
from palestra.contract.account import AccountView, LoginSessionView, PasswordChange, PasswordChanged
from palestra.contract.overview import OverviewView
from palestra.contract.people import AccountChange, SignedOut
from palestra.contract.views import Page

router = ResourceRouter(tags=["account"])

SessionPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "last_used_at")))
]


@router.get("/account")
async def get_account(principal: AccountOwner, session: ReadSession) -> AccountView:
    """Returns the caller's account."""
    return await accounts.get(session, principal)


@router.patch("/account")
async def change_account(
    principal: AccountOwner,
    body: Annotated[AccountChange, Depends(JsonBody(AccountChange, limit=TINY))],
    session: WriteSession,
) -> AccountView:
    """Changes the caller's display name and e-mail address."""
    return await accounts.change(session, principal, body)


@router.get("/account/overview")
async def get_overview(principal: Reader, session: ReadSession) -> OverviewView:
    """Returns the caller's running and failed runs, the next job, and the numbers of jobs."""
    return await overview.show(session, principal)


@router.put("/account/password", responses={409: {}})
async def set_password(
    request: Request,
    principal: AccountOwner,
    body: Annotated[PasswordChange, Depends(JsonBody(PasswordChange, limit=TINY))],
    database: DatabaseDep,
) -> PasswordChanged:
    """Sets the caller's password.

    Needs the current one where one is set, unless a one-time link opened the login within the last
    15 minutes. Ends all other browser logins and all login links; tokens stay.
    """
    owner = await accounts.find_password_owner(database, principal, body)
    if owner.confirmation == "current password":
        async with count_guess(request, owner.account):
            await accounts.check_current_password(owner, body.current_password)
    return await accounts.set_password(
        database, principal, owner, body.password, read_origin(request)
    )


@router.get("/account/sessions")
async def list_sessions(
    principal: AccountOwner, session: ReadSession, settings: SettingsDep, page: SessionPage
) -> Page[LoginSessionView]:
    """Lists the caller's browser logins that have not ended."""
    return await accounts.list_sessions(session, principal, settings, page)


@router.delete("/account/sessions/{session_id}", status_code=204)
async def end_session(session_id: str, principal: AccountOwner, session: WriteSession) -> None:
    """Ends a browser login of the caller, with its live streams."""
    await accounts.end_session(session, principal, session_id)


@router.post("/account:sign-out")
async def sign_out(
    request: Request, response: Response, principal: AccountOwner, session: WriteSession
) -> SignedOut:
    """Ends all browser logins of the caller, the present one too, and all login links.

    Live streams of these logins end within 3 s; tokens stay.
    """
    forget_login(request, response)
    return await accounts.sign_out(session, principal)
