"""Bearer tokens of users: create, list, revoke."""

from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.repositories import access as rows
from app.domain.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from app.domain.paging import PageRequest, keyset
from app.domain.principal import Principal
from app.domain.secrets import hash_secret, new_secret
from app.services.audit import audit_log
from app.services.views import pages
from palestra.contract.access import (
    TokenRequest,
    TokenView,
)
from palestra.contract.names import Scope, new_id
from palestra.contract.views import Page


async def create_token(session: Session, principal: Principal, request: TokenRequest) -> TokenView:
    """Creates a token and returns it with its secret, which is not shown again.

    A token that is created with a token is its child: it has no scope that the parent lacks,
    expires no later, and is revoked with it. It expires with the parent if no lifetime is
    requested, or one that exceeds the parent's by less than a day.

    Raises:
        ForbiddenError: If the caller lacks a requested scope; `worker` requires an admin.
        InvalidError: If it would expire later than its parent.
    """
    allowed = principal.scopes | (
        {Scope.READ, Scope.SUBMIT, Scope.WORKER} if Scope.ADMIN in principal.scopes else set()
    )
    if missing := set(request.scopes) - allowed:
        raise ForbiddenError(
            "missing_scope", f"You cannot give the scope {min(missing)}: you do not have it."
        )
    parent, days = principal.token_id, request.expires_in_days
    shorter = parent is not None and await rows.expires_within(session, parent, days)
    far = None if days is None else days - 1
    has_life = "expires_in_days" in request.model_fields_set
    if parent is not None and has_life and await rows.expires_within(session, parent, far):
        message = (
            "would outlive the token that makes it: ask for fewer days, or leave this out "
            "for the same end"
        )
        raise InvalidError("outlives_parent", message, pointer="/expires_in_days")
    whose = (principal.project_id, principal.user_id)
    return await issue_token(session, *whose, request, parent_id=parent, same_end=shorter)


async def issue_token(
    session: Session,
    project_id: str,
    user_id: str,
    request: TokenRequest,
    *,
    parent_id: str | None = None,
    same_end: bool = False,
) -> TokenView:
    """Creates a token of a user without permission checks; returns it with its secret.

    Args:
        session: The transaction.
        project_id: Project of the token.
        user_id: User of the token.
        request: Name, scopes and lifetime.
        parent_id: The token that creates it.
        same_end: Whether it expires with its parent, whatever lifetime is requested.
    """
    secret = new_secret("plr")
    scopes = sorted({scope.value for scope in request.scopes})
    token = TokenRow(
        id=new_id("tok"),
        project_id=project_id,
        user_id=user_id,
        parent_id=parent_id,
        name=request.name,
        secret_hash=hash_secret(secret),
        scopes=scopes,
    )
    session.add(token)
    await session.flush()
    if same_end and parent_id is not None:
        await rows.take_expiry(session, token.id, parent_id)
    elif request.expires_in_days is not None:
        await rows.set_expiry(session, token.id, request.expires_in_days)
    await session.refresh(token)
    audit_log.record(
        session,
        "token.create",
        token.id,
        project_id=project_id,
        actor=f"user:{user_id}",
        data={"name": token.name, "scopes": scopes},
    )
    return _view(token, secret)


async def list_tokens(session: Session, principal: Principal, page: PageRequest) -> Page[TokenView]:
    """Returns tokens: all of the project for an admin, else the caller's own."""
    owner = None if principal.permits(Scope.ADMIN) else principal.user_id
    keys = keyset(page, rows.TOKEN_COLUMNS)
    return await pages.cut(
        await rows.tokens(session, principal.project_id, owner, keys), page, keys, _views
    )


async def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Revokes a token and all tokens that were created with it.

    Credentials of workers are not revoked, since a worker outlives the user who set it up.

    Raises:
        NotFoundError: If the caller sees no such token.
    """
    token = await rows.token(session, principal.project_id, token_id)
    if token is None or (token.user_id != principal.user_id and not principal.permits(Scope.ADMIN)):
        raise NotFoundError("token")
    ended = [token.id, *await _descendants(session, token.id)]
    await rows.revoke_tokens(session, ended)
    for ended_id in ended:
        audit_log.record(
            session,
            "token.revoke",
            ended_id,
            project_id=principal.project_id,
            actor=f"user:{principal.user_id}",
        )


async def _descendants(session: Session, token_id: str) -> list[str]:
    """Returns the tokens created with a token, directly or indirectly, without those of workers."""
    found: list[str] = []
    parents = [token_id]
    while parents:
        made = await rows.made_by(session, parents)
        parents = [token.id for token in made if token.scopes != [Scope.WORKER.value]]
        found += parents
    return found


async def _views(tokens: Sequence[TokenRow]) -> list[TokenView]:
    return [_view(token) for token in tokens]


def _view(token: TokenRow, secret: str | None = None) -> TokenView:
    return TokenView(
        id=token.id,
        parent_id=token.parent_id,
        name=token.name,
        scopes=[Scope(scope) for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
        secret=secret,
    )
