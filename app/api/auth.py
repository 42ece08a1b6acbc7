"""Authentication and authorisation: one router-level dependency, deny by default.

Every route of `/api/v1` passes `authenticate`. A route then names the permission that it needs by
the type of its caller, for example `Reader` or `Submitter`. The services check the permission
again, in the project of the object. The project that limits a request is a parameter of its route.

The dependencies are coroutines, since FastAPI calls plain functions in a thread, which costs more
than they do.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Path, Query, Request, Response, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from app.api.cookies import read_cookie, remove_cookie
from app.api.deps import get_database, get_settings
from app.api.errors import build_forbidden, build_unauthenticated
from app.api.origin import get_client_address
from app.domain.permissions import SCOPE_PERMISSIONS, list_permitted
from app.domain.principal import Principal
from app.services.access import principals, rights
from app.services.access.attempt_tokens import AttemptTokens
from app.services.access.last_used import UsedCredentials
from palestra.contract.permissions import Permission

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER: Final = "X-CSRF-Token"
MAX_TOKEN: Final = 512

SESSION_COOKIE: Final = "palestra_session"

NEEDS: Final = "palestra_needs"
"""Attribute of a dependency, or of a Starlette route: what its caller needs. A test reads it."""

_bearer: Final = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="An API token: `Authorization: Bearer plr_...`.",
)
_cookie: Final = APIKeyCookie(
    name=SESSION_COOKIE,
    auto_error=False,
    scheme_name="session",
    description="The browser's login.",
)


DECLARED_CREDENTIALS: Final = (Security(_bearer), Security(_cookie))
"""Dependencies that describe the credentials in the OpenAPI document, and nothing else."""


async def authenticate(request: Request) -> None:
    """Authenticates a request by its bearer token if it has one, else by its session cookie.

    The dependencies of one request that read `request.state.principal` come after it.

    Raises:
        HttpProblemError: 401 without a valid credential; 429 after too many requests with it; 403
            for a cookie whose request did not provably come from the pages of this server.
    """
    authorization = request.headers.getlist("authorization")
    if authorization:
        principal = await _by_token(request, authorization)
    else:
        principal = await _by_cookie(request)
    request.app.state.request_rate.check(principal)
    request.state.principal = principal


async def limit_to_project(
    request: Request,
    project: Annotated[
        str | None, Query(description="Slug of a project; by default all that you may read.")
    ] = None,
) -> None:
    """Limits a request of a user to the project that its query names.

    Any text is accepted, and is no project or one: FastAPI does not call a dependency with an
    invalid parameter, but those that come after it.
    """
    if project is not None:
        _limit(request, project)


LimitedToProject: Final = Depends(limit_to_project)


async def limit_to_project_of_path(
    request: Request, project: Annotated[str, Path(description="Slug.")]
) -> None:
    """Limits a request of a user to the project that its path names."""
    _limit(request, project)


def _limit(request: Request, slug: str) -> None:
    principal: Principal = request.state.principal
    if principal.via in {"cookie", "token"}:
        request.state.principal = rights.limit_to_project(principal, slug)


async def get_principal(request: Request) -> Principal:
    """Returns the caller, limited to the project that the request names."""
    principal: Principal = request.state.principal
    return principal


CurrentPrincipal = Annotated[Principal, Depends(get_principal)]


async def _by_token(request: Request, authorization: list[str]) -> Principal:
    scheme, _, token = authorization[0].partition(" ")
    if (
        len(authorization) > 1
        or scheme.lower() != "bearer"
        or not 0 < len(token) <= MAX_TOKEN
        or not token.isascii()
    ):
        raise build_unauthenticated()
    secret = token.strip()
    principal = await principals.find_by_token(get_database(request), secret)
    if principal is not None and principal.attempt_id is not None:
        tokens: AttemptTokens = request.app.state.attempt_tokens
        tokens.add(secret, principal.attempt_id)
    if principal is None:
        raise build_unauthenticated("This token is unknown, expired or revoked. Make a new one.")
    return principal


async def _by_cookie(request: Request) -> Principal:
    secret = read_cookie(request, SESSION_COOKIE)
    if not 0 < len(secret) <= MAX_TOKEN:
        raise build_unauthenticated()
    found = await principals.find_by_session(get_database(request), secret, get_settings(request))
    if found is None:
        raise build_unauthenticated("This login has ended. Log in again.")
    principal, csrf = found
    if request.method not in SAFE_METHODS:
        check_same_origin(request)
        _check_csrf(request, csrf)
    request.state.csrf = csrf
    return principal


async def note_use(request: Request) -> None:
    """Notes when and from where the caller's token or login was used."""
    touches: UsedCredentials = request.app.state.touches
    principal: Principal = request.state.principal
    if principal.token_id is not None or principal.session_id is not None:
        touches.note(principal.token_id, principal.session_id, get_client_address(request))


async def note_use_of_token(request: Request) -> None:
    """Notes the use of a token alone, for live streams.

    A page whose stream reconnects repeatedly must not keep an unused login alive.
    """
    touches: UsedCredentials = request.app.state.touches
    principal: Principal = request.state.principal
    if principal.token_id is not None:
        touches.note(principal.token_id, None, get_client_address(request))


def forget_login(request: Request, response: Response) -> None:
    """Removes the session cookie from the browser."""
    remove_cookie(request, response, SESSION_COOKIE)


def check_same_origin(request: Request, *, programs: bool = False) -> None:
    """Refuses with 403 a request that a browser sends for a page of another site.

    Requests without `Sec-Fetch-Site` and `Origin` come from programs; they pass with `programs`.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site not in {None, "same-origin", "none"} or (
        site is None and origin is None and not programs
    ):
        raise build_forbidden(
            "cross_site",
            "Changes must come from the dashboard itself. Use a bearer token from programs.",
        )
    # A proxy may replace the Host header, as nginx does by default.
    own = {request.headers.get("host", ""), urlsplit(get_settings(request).public_url).netloc}
    own = {netloc.lower() for netloc in own if netloc}
    if origin is not None and urlsplit(origin).netloc.lower() not in own:
        raise build_forbidden(
            "cross_site",
            "The Origin header names another site. Use a bearer token from programs; behind a "
            "proxy, set public_url to the address that browsers open.",
        )


def _check_csrf(request: Request, expected: str) -> None:
    sent = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(sent.encode(), expected.encode()):
        raise build_forbidden(
            "csrf", f"Send the login's csrf_token as {CSRF_HEADER}; GET /api/v1/session returns it."
        )


def require(*permissions: Permission) -> Callable[[Principal], Awaitable[Principal]]:
    """Returns the dependency of routes that need at least one of the given permissions.

    A permission of a project must be held in one project at least; the services check it in the
    project of the object. Lists are open to every user, who sees nothing without a membership.
    """

    async def check(principal: CurrentPrincipal) -> Principal:
        _check_scope(principal, permissions[0])
        if Permission.PROJECT_READ not in permissions and not any(
            principal.permits(permission) for permission in permissions
        ):
            named = " or ".join(permissions)
            raise build_forbidden(
                "missing_permission",
                f"This needs the permission {named}, which your roles do not give. Ask a "
                "maintainer of the project, or an administrator of the server.",
            )
        return principal

    setattr(check, NEEDS, " or ".join(permissions))
    return check


def _check_scope(principal: Principal, permission: Permission) -> None:
    if permission not in list_permitted(principal.scopes):
        scope = next(
            scope for scope, permitted in SCOPE_PERMISSIONS.items() if permission in permitted
        )
        raise build_forbidden(
            "missing_scope", f"This needs the scope {scope}. Use a token that has it."
        )


async def require_enrolment(principal: CurrentPrincipal) -> Principal:
    """Requires an enrolment token, or the secret of a worker that registers again."""
    if principal.pool is None:
        raise build_forbidden(
            "missing_scope",
            "Only workers may do this. They enrol with a token of their pool, which an "
            "administrator of the server makes: `palestra pools token POOL --days 30`.",
        )
    return principal


async def require_attempt(principal: CurrentPrincipal, attempt_id: str) -> Principal:
    """Requires the token of the attempt that the path names as `attempt_id`.

    Raises:
        HttpProblemError: 403 for another attempt's token, so that a mix-up cannot write, and
            for every other credential.
    """
    if principal.attempt_id is None:
        raise build_forbidden("attempt_token_needed", "Only the attempt's own token may do this.")
    if principal.attempt_id != attempt_id:
        raise build_forbidden("other_attempt", "This token belongs to another attempt.")
    return principal


async def require_reader_or_attempt(principal: CurrentPrincipal) -> Principal:
    """Requires the scope `read`, or an attempt token, with which attempts download snapshots."""
    if principal.attempt_id is None:
        _check_scope(principal, Permission.PROJECT_READ)
    return principal


async def require_login(principal: CurrentPrincipal) -> Principal:
    """Requires any login or user token, independent of its scopes."""
    if principal.via not in {"cookie", "token"}:
        raise build_forbidden(
            "missing_scope", "The credential of an attempt, a worker or a pool may not do this."
        )
    return principal


async def require_own_secret(principal: CurrentPrincipal) -> Principal:
    """Requires a worker's secret: an enrolment token can only register a worker."""
    if principal.worker_id is None:
        raise build_forbidden(
            "worker_secret_needed",
            (
                "Only a worker's own secret may do this; registering with an enrolment token "
                "gives one."
            ),
        )
    return principal


async def require_manager(principal: CurrentPrincipal) -> Principal:
    """Requires a browser login or a token with the scope `admin`, for routes that manage tokens.

    Other tokens are refused, so that a stolen token cannot create further ones.
    """
    if not principal.permits(Permission.ACCOUNT):
        raise build_forbidden(
            "missing_scope", "This needs a browser's login or the scope admin. Use one of them."
        )
    return principal


async def require_person(principal: CurrentPrincipal) -> Principal:
    """Requires a person's browser login, or a token of all projects with the scope `admin`.

    Service accounts have no account to manage, and a token of one project has no rights beyond
    that project.
    """
    await require_manager(principal)
    if principal.is_service_account or principal.is_bound:
        raise build_forbidden(
            "person_needed",
            "Only a person may do this: log in with a browser, or use a token of yours that is "
            "not limited to one project.",
        )
    return principal


setattr(require_manager, NEEDS, Permission.ACCOUNT.value)
setattr(require_person, NEEDS, Permission.ACCOUNT.value)
setattr(require_enrolment, NEEDS, "enrolment")
setattr(require_attempt, NEEDS, "attempt")
setattr(require_own_secret, NEEDS, "worker secret")
setattr(require_reader_or_attempt, NEEDS, "read or attempt")
setattr(require_login, NEEDS, "login")

Reader = Annotated[Principal, Depends(require(Permission.PROJECT_READ))]
Submitter = Annotated[Principal, Depends(require(Permission.RUN_SUBMIT))]
JobCanceller = Annotated[
    Principal, Depends(require(Permission.RUN_CONTROL_OWN, Permission.SERVER_CANCEL))
]
Controller = Annotated[Principal, Depends(require(Permission.RUN_CONTROL_OWN))]
AuditReader = Annotated[
    Principal, Depends(require(Permission.PROJECT_AUDIT, Permission.SERVER_AUDIT))
]
UserManager = Annotated[Principal, Depends(require(Permission.SERVER_USERS))]
ProjectManager = Annotated[
    Principal, Depends(require(Permission.PROJECT_SETTINGS, Permission.SERVER_PROJECTS))
]
ExperimentMover = Annotated[Principal, Depends(require(Permission.PROJECT_SETTINGS))]
MemberManager = Annotated[
    Principal, Depends(require(Permission.PROJECT_MEMBERS, Permission.SERVER_PROJECTS))
]
ServerProjectManager = Annotated[Principal, Depends(require(Permission.SERVER_PROJECTS))]
CredentialManager = Annotated[Principal, Depends(require(Permission.PROJECT_CREDENTIALS))]
PoolManager = Annotated[Principal, Depends(require(Permission.SERVER_POOLS))]
Enroller = Annotated[Principal, Depends(require_enrolment)]
WorkerCaller = Annotated[Principal, Depends(require_own_secret)]
OfAttempt: Final = Depends(require_attempt)
AttemptCaller = Annotated[Principal, OfAttempt]
ReaderOrAttempt = Annotated[Principal, Depends(require_reader_or_attempt)]
AccountOwner = Annotated[Principal, Depends(require_person)]
TokenManager = Annotated[Principal, Depends(require_manager)]
Anyone = Annotated[Principal, Depends(require_login)]
