"""Enrolment tokens of pools: created, listed, revoked."""

from typing import Final

from app.db.engine import ACCESS, Session, announce
from app.db.models.pools import EnrolmentTokenRow
from app.db.repositories import access as access_rows
from app.db.repositories import pools as rows
from app.domain.errors import NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import generate_secret, hash_secret
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.views.columns import build_view
from app.services.workers import pools
from palestra.contract.names import new_id
from palestra.contract.pools import EnrolmentTokenRequest, EnrolmentTokenView
from palestra.contract.views import Page

_CONSOLE: Final = "daemon:bootstrap"


async def create(
    session: Session, principal: Principal, pool: str, request: EnrolmentTokenRequest
) -> EnrolmentTokenView:
    """Creates a token with which workers enrol in a pool; returns it with its secret.

    Raises:
        NotFoundError: If there is no such pool.
    """
    rights.require_pool_management(principal)
    return await issue(
        session, pool, request, user_id=principal.user_id, by=describe_actor(principal)
    )


async def issue(
    session: Session,
    pool: str,
    request: EnrolmentTokenRequest,
    *,
    user_id: str | None = None,
    by: str = _CONSOLE,
) -> EnrolmentTokenView:
    """Creates a token of a pool without a check of permissions.

    Raises:
        NotFoundError: If there is no such pool.
    """
    found = await pools.find(session, pool, lock=True)
    secret = generate_secret("ple")
    values = {
        "id": new_id("ent"),
        "pool_id": found.id,
        "name": request.name,
        "secret_hash": hash_secret(secret),
        "created_by": user_id,
    }
    token = await rows.insert_token(session, values, request.expires_in_days)
    data = {"pool": pool, "name": token.name, "expires_in_days": request.expires_in_days}
    audit_log.record(
        session, "enrolment_token.create", token.id, project_id=None, actor=by, data=data
    )
    names = await access_rows.load_user_names(session, {user_id} if user_id is not None else set())
    return _view(token, pool, names.get(user_id or "")).model_copy(update={"secret": secret})


async def list_tokens(
    session: Session, principal: Principal, pool: str
) -> Page[EnrolmentTokenView]:
    """Returns the tokens with which workers enrol in a pool.

    Expired ones are listed until they are revoked.

    Raises:
        NotFoundError: If there is no such pool.
    """
    rights.require_pool_management(principal)
    found = await pools.find(session, pool)
    tokens = await rows.list_tokens(session, found.id)
    names = await access_rows.load_user_names(
        session, {token.created_by for token in tokens if token.created_by is not None}
    )
    items = [_view(token, pool, names.get(token.created_by or "")) for token in tokens]
    return Page(items=items, next_cursor=None)


async def revoke(session: Session, principal: Principal, pool: str, token_id: str) -> None:
    """Revokes a token with which workers enrol in a pool; workers that enrolled go on.

    Raises:
        NotFoundError: If there is no such pool, or it has no such token.
    """
    rights.require_pool_management(principal)
    found = await pools.find(session, pool)
    name = await rows.revoke_token(session, found.id, token_id)
    if name is None:
        raise NotFoundError("enrolment token")
    audit_log.record(
        session,
        "enrolment_token.revoke",
        token_id,
        project_id=None,
        actor=describe_actor(principal),
        data={"pool": pool, "name": name},
    )
    announce(session, ACCESS)


def _view(token: EnrolmentTokenRow, pool: str, maker: str | None) -> EnrolmentTokenView:
    return build_view(EnrolmentTokenView, token, pool=pool, created_by=maker)
