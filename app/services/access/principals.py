"""Principals of requests: by token, by a worker's or attempt's secret, or by browser login."""

from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.repositories import access as rows
from app.domain.principal import Principal, Via
from app.domain.secrets import csrf_token, derivation_key, hash_secret, is_well_formed
from app.settings import Settings
from palestra.contract.names import Scope

ROLE_SCOPES: Final = {
    "viewer": frozenset({Scope.READ}),
    "member": frozenset({Scope.READ, Scope.SUBMIT}),
    "admin": frozenset({Scope.READ, Scope.SUBMIT, Scope.ADMIN}),
}


@dataclass(frozen=True, slots=True)
class Identity:
    """The principal of a request, with the CSRF token of a browser login."""

    principal: Principal
    csrf: str | None


async def principal_of_token(session: Session, secret: str) -> Principal | None:
    """Returns the principal of a bearer token: a user, a worker or an attempt.

    `None` if the token is not valid.
    """
    if not is_well_formed(secret):
        return None
    digest = hash_secret(secret)
    if secret.startswith("pla_"):
        return await _principal_of_attempt(session, digest)
    if secret.startswith("plw_"):
        return await _principal_of_worker(session, secret, digest)
    token = await rows.live_token(session, digest)
    found = None if token is None else await rows.holder(session, token.user_id, token.project_id)
    if token is None or found is None:
        return None
    caller = principal_of_member(found, "token", _granted(token, found.role), token_id=token.id)
    return replace(caller, derivation_key=derivation_key(secret))


def _granted(token: TokenRow, role: str) -> frozenset[Scope]:
    """Returns the scopes of a token, limited to the current role of its user.

    The scope of workers is not limited, so that they keep working.
    """
    return frozenset(Scope(scope) for scope in token.scopes) & (ROLE_SCOPES[role] | {Scope.WORKER})


async def _principal_of_attempt(session: Session, digest: str) -> Principal | None:
    attempt = await rows.attempt_by_token(session, digest)
    if attempt is None:
        return None
    return Principal(
        project_id=attempt.project_id,
        project="",
        user_id="",
        user=f"attempt {attempt.id}",
        via="attempt",
        attempt_id=attempt.id,
    )


async def _principal_of_worker(session: Session, secret: str, digest: str) -> Principal | None:
    worker = await rows.worker_by_secret(session, digest)
    if worker is None:
        return None
    return Principal(
        project_id=worker.project_id,
        project="",
        user_id=worker.created_by,
        user=f"worker {worker.name}",
        via="worker",
        scopes=frozenset({Scope.WORKER}),
        worker_id=worker.id,
        derivation_key=derivation_key(secret),
    )


async def principal_of_session(
    session: Session, secret: str, settings: Settings
) -> tuple[Principal, str] | None:
    """Returns the principal of a browser login and its CSRF token.

    `None` if the login is not valid.
    """
    if not is_well_formed(secret):
        return None
    login = await rows.live_login(
        session, hash_secret(secret), settings.session_idle_seconds, settings.session_max_seconds
    )
    found = None if login is None else await rows.holder(session, login.user_id, login.project_id)
    if login is None or found is None:
        return None
    return principal_of_member(
        found, "cookie", ROLE_SCOPES[found.role], session_id=login.id
    ), csrf_token(secret)


def principal_of_member(
    found: rows.Holder,
    via: Via,
    scopes: frozenset[Scope],
    *,
    token_id: str | None = None,
    session_id: str | None = None,
) -> Principal:
    return Principal(
        project_id=found.project.id,
        project=found.project.name,
        user_id=found.user.id,
        user=found.user.name,
        via=via,
        scopes=scopes,
        token_id=token_id,
        session_id=session_id,
    )
