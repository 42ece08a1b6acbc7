"""The browser's login: by password, or by a one-time link from the console."""

from typing import Annotated

from fastapi import Depends, Request, Response

from app.api.auth import SESSION_COOKIE, Anyone, check_same_origin, forget_login
from app.api.cookies import set_cookie
from app.api.deps import DatabaseDep, ReadSession, WriteSession, get_settings
from app.api.login_rate import check_address, count_guess, remember_browser
from app.api.origin import read_origin
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.domain.permissions import OF_NO_PROJECT
from app.domain.principal import Membership, Principal
from app.services.access import link_preview, logins, principals, sessions
from palestra.contract.access import (
    LinkPreview,
    LoginOptions,
    LoginRequest,
    MembershipView,
    SessionView,
    SetupRequest,
)
from palestra.contract.permissions import Permission

public_router = ResourceRouter(tags=["access"])
router = ResourceRouter(tags=["access"])


async def admit(request: Request) -> None:
    """Refuses requests of other sites' pages, before the body is read."""
    check_same_origin(request, programs=True)


async def admit_password(request: Request) -> None:
    """Refuses requests like `admit`, and addresses without a guess left."""
    await admit(request)
    check_address(request)


@public_router.get("/session:options")
async def login_options(session: ReadSession) -> LoginOptions:
    """Returns the ways to log a browser in. Needs no login."""
    return await logins.list_login_options(session)


@public_router.post(
    "/session",
    status_code=201,
    dependencies=[Depends(admit_password)],
    responses={401: {}, 403: {}, 429: {}},
)
async def log_in(
    request: Request,
    response: Response,
    body: Annotated[LoginRequest, Depends(JsonBody(LoginRequest, limit=TINY))],
    database: DatabaseDep,
) -> SessionView:
    """Logs a browser in with user name and password."""
    account = await logins.find_account(database, body.user)
    async with count_guess(request, account):
        login = await logins.log_in(database, account, body.password, read_origin(request))
    return _open(request, response, login)


@public_router.post(
    "/session:redeem",
    status_code=201,
    dependencies=[Depends(admit)],
    responses={200: {"model": LinkPreview}, 401: {}, 403: {}, 409: {}},
)
async def redeem_link(
    request: Request,
    response: Response,
    body: Annotated[SetupRequest, Depends(JsonBody(SetupRequest, limit=TINY))],
    database: DatabaseDep,
) -> SessionView | LinkPreview:
    """Logs a browser in with the code of a one-time link or an invitation.

    May set name and password; an invitation needs them. With `check_only` the answer is 200 and
    describes the link, which stays valid.
    """
    if body.check_only:
        response.status_code = 200
        return await link_preview.preview(database, body)
    return _open(request, response, await logins.redeem(database, body, read_origin(request)))


@router.get("/session")
async def get_session(request: Request, principal: Anyone) -> SessionView:
    """Returns the user or token of the request."""
    return _view(principals.Identity(principal, getattr(request.state, "csrf", None)))


@router.delete("/session", status_code=204)
async def log_out(
    request: Request,
    response: Response,
    principal: Anyone,
    session: WriteSession,
) -> None:
    """Ends the browser's login."""
    await sessions.log_out(session, principal)
    forget_login(request, response)


def _open(request: Request, response: Response, login: sessions.Login) -> SessionView:
    seconds = get_settings(request).session_max_seconds
    set_cookie(request, response, SESSION_COOKIE, login.secret, max_age=seconds)
    remember_browser(request, response, login.principal.user_id)
    return _view(principals.Identity(login.principal, login.csrf))


def _view(identity: principals.Identity) -> SessionView:
    principal = identity.principal
    slugs = [one.slug for one in principal.memberships]
    return SessionView(
        user=principal.user,
        user_id=principal.user_id,
        display_name=principal.display_name,
        is_admin=principal.is_admin,
        project=slugs[0] if len(slugs) == 1 else "",
        projects=[_membership_view(principal, one) for one in principal.memberships],
        permissions=[one for one in Permission if principal.permits(one) and one in OF_NO_PROJECT],
        scopes=sorted(principal.scopes),
        csrf_token=identity.csrf,
        via="cookie" if principal.via == "cookie" else "token",
    )


def _membership_view(principal: Principal, membership: Membership) -> MembershipView:
    return MembershipView(
        project_id=membership.project_id,
        slug=membership.slug,
        name=membership.name,
        role=membership.role,
        archived=membership.archived,
        permissions=principal.permissions_in(membership.project_id),
    )
