"""Bearer tokens of users: create, list, revoke."""

from collections.abc import Sequence
from functools import partial

from app.db.engine import ACCESS, Session, announce
from app.db.models.access import TokenRow
from app.db.repositories import access as rows
from app.db.repositories.access import TokenFilter
from app.domain.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from app.domain.paging import PageRequest, keyset
from app.domain.principal import Principal
from app.domain.secrets import hash_secret, new_secret
from app.services.access import rights
from app.services.audit import audit_log
from app.services.views import pages
from palestra.contract.access import (
    TokenRequest,
    TokenView,
)
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Permission
from palestra.contract.views import Page


async def create_token(session: Session, principal: Principal, request: TokenRequest) -> TokenView:
    """Creates a token and returns it with its secret, which is not shown again.

    A token that is created with a token is its child: it has no scope that the parent lacks,
    expires no later, and is revoked with it. It expires with the parent if no lifetime is
    requested, or one that exceeds the parent's by less than a day.

    Raises:
        ForbiddenError: If the caller cannot give a requested scope; `worker` requires a server
            administrator.
        NotFoundError: If the caller's credential does not cover the project that it names.
        InvalidError: If it would expire later than its parent.
    """
    if missing := set(request.scopes) - _may_give(principal):
        raise ForbiddenError(
            "missing_scope", f"You cannot give the scope {min(missing)}: you do not have it."
        )
    project_id = _project_of(principal, request)
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
    whose = (project_id, principal.user_id)
    return await issue_token(session, *whose, request, parent_id=parent, same_end=shorter)


def _may_give(principal: Principal) -> frozenset[Scope]:
    """Returns the scopes that a caller can give to a token.

    The permissions of a token are always limited to those of its user, so a user may give any scope
    but that of workers.
    """
    allowed = principal.scopes
    if Scope.ADMIN in allowed:
        allowed |= {Scope.READ, Scope.SUBMIT}
    if principal.permits(Permission.SERVER_POOLS):
        allowed |= {Scope.WORKER}
    return allowed


def _project_of(principal: Principal, request: TokenRequest) -> str | None:
    """Returns the ID of the project to which a new token is bound; `None` for all of its user's."""
    if request.project is not None:
        (membership,) = rights.within(principal, request.project).memberships
        return membership.project_id
    if Scope.WORKER in request.scopes or principal.is_bound:
        return rights.only_project(principal)
    return None


async def issue_token(
    session: Session,
    project_id: str | None,
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
    (view,) = await _views(session, [token], secret)
    return view


async def list_tokens(session: Session, principal: Principal, page: PageRequest) -> Page[TokenView]:
    """Returns the caller's own tokens, and all tokens of the projects that it maintains."""
    keys = keyset(page, rows.TOKEN_COLUMNS)
    found = await rows.tokens(session, _seen_by(principal), keys)
    return await pages.cut(found, page, keys, partial(_views, session))


def _seen_by(principal: Principal) -> TokenFilter:
    projects = principal.projects_with(Permission.PROJECT_CREDENTIALS)
    return TokenFilter(user_id=principal.user_id, project_ids=projects)


async def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Revokes a token and all tokens that were created with it.

    Credentials of workers are not revoked, since a worker outlives the user who set it up.

    Raises:
        NotFoundError: If the caller sees no such token.
    """
    token = await rows.token(session, _seen_by(principal), token_id)
    if token is None:
        raise NotFoundError("token")
    ended = [token.id, *await _descendants(session, token.id)]
    await rows.revoke_tokens(session, ended)
    for ended_id in ended:
        audit_log.record(
            session,
            "token.revoke",
            ended_id,
            project_id=token.project_id,
            actor=f"user:{principal.user_id}",
        )
    announce(session, ACCESS)


async def _descendants(session: Session, token_id: str) -> list[str]:
    """Returns the tokens created with a token, directly or indirectly, without those of workers."""
    found: list[str] = []
    parents = [token_id]
    while parents:
        made = await rows.made_by(session, parents)
        parents = [token.id for token in made if token.scopes != [Scope.WORKER.value]]
        found += parents
    return found


async def _views(
    session: Session, tokens: Sequence[TokenRow], secret: str | None = None
) -> list[TokenView]:
    users = await rows.user_names(session, {token.user_id for token in tokens})
    slugs = await rows.project_slugs(
        session, {token.project_id for token in tokens if token.project_id is not None}
    )
    return [
        _view(token, users[token.user_id], slugs.get(token.project_id or ""), secret)
        for token in tokens
    ]


def _view(token: TokenRow, user: str, project: str | None, secret: str | None) -> TokenView:
    return TokenView(
        id=token.id,
        user=user,
        project=project,
        parent_id=token.parent_id,
        name=token.name,
        scopes=[Scope(scope) for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
        secret=secret,
    )
