"""Principals of requests: by token, by a worker's or attempt's secret, or by browser login."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Database, Session
from app.db.models.access import TokenRow
from app.db.repositories import access as rows
from app.db.repositories import callers
from app.db.repositories import login_sessions as login_rows
from app.db.repositories import tokens as token_rows
from app.db.repositories.callers import Caller, LoginCaller, TokenCaller
from app.domain.principal import Principal, Via
from app.domain.secrets import derive_csrf_token, derive_key, hash_secret, is_well_formed
from app.services.access.present_rights import build_user_gone
from app.settings import Settings
from palestra.contract.names import Scope

_OF_MACHINES: Final = ("pla_", "plw_", "ple_")
"""Prefixes of the secrets of attempts, workers and enrolments."""
USER_SCOPES: Final = frozenset({Scope.READ, Scope.SUBMIT, Scope.ADMIN})
"""Scopes of a browser login: all that its user's roles permit."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The principal of a request, with the CSRF token of a browser login."""

    principal: Principal
    csrf: str | None


async def find_by_token(source: Database | Session, secret: str) -> Principal | None:
    """Returns the principal of a bearer token: a user, a pool's enrolment, a worker or an attempt.

    Executes one statement, most quickly on a database. `None` if the token is not valid.
    """
    if not is_well_formed(secret):
        return None
    digest = hash_secret(secret)
    if not secret.startswith(_OF_MACHINES):
        found = await callers.find_by_token(source, digest)
        return None if found is None else build_user_of_token(found)
    if secret.startswith("pla_"):
        return await _principal_of_attempt(source, digest)
    if secret.startswith("plw_"):
        return await _principal_of_worker(source, secret, digest)
    return await _principal_of_enrolment(source, secret, digest)


def build_user_of_token(found: TokenCaller) -> Principal:
    """Returns the user of a token as a caller.

    A token of one project carries no permission of the server.
    """
    scopes = frozenset(Scope(scope) for scope in found.scopes)
    caller = _build_user(found, "token", scopes, token_id=found.token_id)
    is_bound = found.project_id is not None
    return replace(caller, is_bound=is_bound, is_admin=caller.is_admin and not is_bound)


async def _principal_of_attempt(source: Database | Session, digest: str) -> Principal | None:
    attempt = await callers.find_attempt(source, digest)
    if attempt is None:
        return None
    return Principal(
        bound_project_id=attempt.project_id,
        user_id="",
        user=f"attempt {attempt.id}",
        via="attempt",
        attempt_id=attempt.id,
    )


async def _principal_of_enrolment(
    source: Database | Session, secret: str, digest: str
) -> Principal | None:
    token = await callers.find_enrolment(source, digest)
    if token is None:
        return None
    return Principal(
        user_id="",
        user=f"enrolment token {token.name}",
        via="enrolment",
        scopes=frozenset({Scope.WORKER}),
        enrolment_id=token.id,
        pool=token.pool,
        derivation_key=derive_key(secret),
    )


async def _principal_of_worker(
    source: Database | Session, secret: str, digest: str
) -> Principal | None:
    worker = await callers.find_worker(source, digest)
    if worker is None:
        return None
    return Principal(
        user_id="",
        user=f"worker {worker.name}",
        via="worker",
        scopes=frozenset({Scope.WORKER}),
        worker_id=worker.id,
        pool=worker.pool,
        uses_next_secret=worker.secret_hash != digest,
        derivation_key=derive_key(secret),
    )


async def find_by_session(
    source: Database | Session, secret: str, settings: Settings
) -> tuple[Principal, str] | None:
    """Returns the principal of a browser login and its CSRF token.

    Executes one statement, most quickly on a database. `None` if the login is not valid.
    """
    if not is_well_formed(secret):
        return None
    found = await callers.find_by_login(
        source, hash_secret(secret), settings.session_idle_seconds, settings.session_max_seconds
    )
    return None if found is None else (build_user_of_login(found), derive_csrf_token(secret))


def build_user_of_login(found: LoginCaller) -> Principal:
    """Returns the user of a browser login as a caller."""
    return _build_user(found, "cookie", USER_SCOPES, session_id=found.login_id)


def _build_user(
    found: Caller,
    via: Via,
    scopes: frozenset[Scope],
    *,
    token_id: str | None = None,
    session_id: str | None = None,
) -> Principal:
    """Returns a user as a caller, with the present memberships."""
    user = found.user
    return Principal(
        user_id=user.id,
        user=user.name,
        display_name=user.display_name,
        via=via,
        scopes=scopes,
        memberships=found.memberships,
        is_admin=user.is_admin,
        is_service_account=user.service_project_id is not None,
        made_by=user.made_by,
        token_id=token_id,
        session_id=session_id,
    )


async def check_still_there(session: Session, principal: Principal) -> None:
    """Refuses a user who was deleted or disabled since the request was authenticated.

    Raises:
        UnauthenticatedError: `unauthenticated`.
    """
    if principal.via in {"cookie", "token"} and not await rows.find_holder(
        session, principal.user_id
    ):
        raise build_user_gone()


async def load_present_principals(
    session: Session, callers: Collection[Principal], settings: Settings
) -> dict[str, Principal]:
    """Returns, by credential, the callers whose tokens and logins are still valid.

    Their memberships are read anew. A fixed number of queries serves any number of callers.
    """
    token_ids = {caller.token_id for caller in callers if caller.token_id is not None}
    session_ids = {caller.session_id for caller in callers if caller.session_id is not None}
    tokens = await token_rows.list_live_tokens(session, token_ids)
    logins = await login_rows.list_live_logins(
        session, session_ids, settings.session_idle_seconds, settings.session_max_seconds
    )
    owners = {token.user_id for token in tokens} | {login.user_id for login in logins}
    found = await rows.load_holders(session, owners)
    of_tokens = {
        token.id: build_user_of_token(_find_token_caller(token, found[token.user_id]))
        for token in tokens
        if token.user_id in found
    }
    of_logins = {
        login.id: build_user_of_login(LoginCaller(one.calling_user, one.memberships, login.id))
        for login in logins
        if (one := found.get(login.user_id)) is not None
    }
    return of_tokens | of_logins


def _find_token_caller(token: TokenRow, found: rows.Holder) -> TokenCaller:
    project_id = token.project_id
    kept = tuple(one for one in found.memberships if project_id in {None, one.project_id})
    return TokenCaller(found.calling_user, kept, token.id, project_id, token.scopes)
