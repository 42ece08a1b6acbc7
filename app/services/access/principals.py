"""Principals of requests: by token, by a worker's or attempt's secret, or by browser login."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Session
from app.db.models.access import LoginSessionRow, TokenRow
from app.db.repositories import access as rows
from app.db.repositories import login_sessions as login_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import tokens as token_rows
from app.domain.principal import Principal, Via
from app.domain.secrets import derive_csrf_token, derive_key, hash_secret, is_well_formed
from app.services.access.present_rights import build_user_gone
from app.settings import Settings
from palestra.contract.names import Scope

USER_SCOPES: Final = frozenset({Scope.READ, Scope.SUBMIT, Scope.ADMIN})
"""Scopes of a browser login: all that its user's roles permit."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The principal of a request, with the CSRF token of a browser login."""

    principal: Principal
    csrf: str | None


def takes_one_statement(secret: str) -> bool:
    """Returns whether `find_by_token` executes one statement for such a secret."""
    return secret.startswith(("pla_", "plw_", "ple_"))


async def find_by_token(session: Session, secret: str) -> Principal | None:
    """Returns the principal of a bearer token: a user, a pool's enrolment, a worker or an attempt.

    `None` if the token is not valid.
    """
    if not is_well_formed(secret):
        return None
    digest = hash_secret(secret)
    if secret.startswith("pla_"):
        return await _principal_of_attempt(session, digest)
    if secret.startswith("plw_"):
        return await _principal_of_worker(session, secret, digest)
    if secret.startswith("ple_"):
        return await _principal_of_enrolment(session, secret, digest)
    token = await token_rows.find_live_token(session, digest)
    found = (
        None if token is None else await rows.find_holder(session, token.user_id, token.project_id)
    )
    if token is None or found is None:
        return None
    return replace(find_user_by_token(token, found), derivation_key=derive_key(secret))


def find_user_by_token(token: TokenRow, found: rows.Holder) -> Principal:
    """Returns the user of a token as a caller.

    A token of one project carries no permission of the server.
    """
    scopes = frozenset(Scope(scope) for scope in token.scopes)
    caller = build_user_principal(found, "token", scopes, token_id=token.id)
    is_bound = token.project_id is not None
    return replace(caller, is_bound=is_bound, is_admin=caller.is_admin and not is_bound)


async def _principal_of_attempt(session: Session, digest: str) -> Principal | None:
    attempt = await rows.find_attempt_by_token(session, digest)
    if attempt is None:
        return None
    return Principal(
        bound_project_id=attempt.project_id,
        user_id="",
        user=f"attempt {attempt.id}",
        via="attempt",
        attempt_id=attempt.id,
    )


async def _principal_of_enrolment(session: Session, secret: str, digest: str) -> Principal | None:
    found = await pool_rows.find_token_by_secret(session, digest)
    if found is None:
        return None
    token, pool = found
    return Principal(
        user_id="",
        user=f"enrolment token {token.name}",
        via="enrolment",
        scopes=frozenset({Scope.WORKER}),
        enrolment_id=token.id,
        pool=pool.name,
        derivation_key=derive_key(secret),
    )


async def _principal_of_worker(session: Session, secret: str, digest: str) -> Principal | None:
    worker = await rows.find_worker_by_secret(session, digest)
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
    session: Session, secret: str, settings: Settings
) -> tuple[Principal, str] | None:
    """Returns the principal of a browser login and its CSRF token.

    `None` if the login is not valid.
    """
    if not is_well_formed(secret):
        return None
    login = await login_rows.find_live_login(
        session, hash_secret(secret), settings.session_idle_seconds, settings.session_max_seconds
    )
    found = None if login is None else await rows.find_holder(session, login.user_id)
    if login is None or found is None:
        return None
    return find_user_by_login(login, found), derive_csrf_token(secret)


def find_user_by_login(login: LoginSessionRow, found: rows.Holder) -> Principal:
    """Returns the user of a browser login as a caller."""
    return build_user_principal(found, "cookie", USER_SCOPES, session_id=login.id)


def build_user_principal(
    found: rows.Holder,
    via: Via,
    scopes: frozenset[Scope],
    *,
    token_id: str | None = None,
    session_id: str | None = None,
) -> Principal:
    """Returns a user as a caller, with the present memberships."""
    return Principal(
        user_id=found.user.id,
        user=found.user.name,
        display_name=found.user.display_name,
        via=via,
        scopes=scopes,
        memberships=found.memberships,
        is_admin=found.user.is_admin,
        is_service_account=found.user.service_project_id is not None,
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
        token.id: find_user_by_token(token, _in_project(found[token.user_id], token.project_id))
        for token in tokens
        if token.user_id in found
    }
    of_logins = {
        login.id: find_user_by_login(login, found[login.user_id])
        for login in logins
        if login.user_id in found
    }
    return of_tokens | of_logins


def _in_project(found: rows.Holder, project_id: str | None) -> rows.Holder:
    kept = (one for one in found.memberships if project_id in {None, one.project_id})
    return replace(found, memberships=tuple(kept))
