"""Bearer tokens of users: create, list, revoke."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.db.engine import ACCESS, Session, announce
from app.db.models.access import TokenRow
from app.db.repositories import access as access_rows
from app.db.repositories import tokens as rows
from app.db.repositories.tokens import TokenFilter
from app.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthenticatedError,
)
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.domain.secrets import generate_secret, hash_secret
from app.services.access import present_rights, rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.views import pages
from app.services.views.tokens import build_token_views
from palestra.contract.access import TokenRequest, TokenRotation, TokenView
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Permission
from palestra.contract.views import Page

_ENROL: Final = (
    "Workers enrol with a token of their pool, which an administrator of the server makes: "
    "`palestra pools token POOL --days 30`, or the page of the pool."
)


async def create_token(
    session: Session, principal: Principal, request: TokenRequest, *, may_never_end: bool = False
) -> TokenView:
    """Creates a token and returns it with its secret, which is not shown again.

    A token that is created with a token is its child: it has no scope that the parent lacks,
    expires no later, and is revoked with it. The child expires with the parent if no lifetime is
    requested, or if the requested one exceeds the parent's by less than a day.

    Raises:
        ForbiddenError: If the caller cannot give a requested scope.
        NotFoundError: If the caller's credential does not cover the project that it names.
        InvalidError: If it would expire later than its parent; `end_needed` for a token that would
            never end, unless `may_never_end`; `enrolment_token_needed` for the scope `worker`.
    """
    check_request(request, may_never_end=may_never_end)
    principal = await present_rights.hold(session, principal)
    if missing := set(request.scopes) - list_grantable_scopes(principal):
        raise ForbiddenError(
            "missing_scope", f"You cannot give the scope {min(missing)}: you do not have it."
        )
    project_id = _choose_project(principal, request)
    return await create_for(session, principal, request, principal.user_id, project_id)


def check_request(request: TokenRequest, *, may_never_end: bool) -> None:
    """Refuses a token that would enrol workers, and a token that would never expire.

    Raises:
        InvalidError: `enrolment_token_needed` or `end_needed`.
    """
    if Scope.WORKER in request.scopes:
        raise InvalidError(
            "enrolment_token_needed",
            f"a token of a user enrols no workers. {_ENROL}",
            pointer="/scopes",
        )
    if request.expires_in_days is None and not may_never_end:
        raise InvalidError(
            "end_needed",
            "a token needs an end: give days, for example 90. An administrator can permit tokens "
            "without one by the setting tokens_without_end",
            pointer="/expires_in_days",
        )


async def create_for(
    session: Session,
    principal: Principal,
    request: TokenRequest,
    user_id: str,
    project_id: str | None,
) -> TokenView:
    """Creates a token of a user that the caller may act for, as a child of the caller's token.

    Raises:
        InvalidError: `outlives_parent` if it would expire later than its parent.
    """
    await _check_still_live(session, principal)
    parent, days = principal.token_id, request.expires_in_days
    shorter = parent is not None and await rows.expires_within(session, parent, days)
    if "expires_in_days" in request.model_fields_set:
        await _check_end(session, parent, days)
    origin = TokenOrigin(
        parent_id=parent, ends_with_parent=shorter, actor=describe_actor(principal)
    )
    return await issue_token(session, project_id, user_id, request, origin=origin)


async def _check_still_live(session: Session, principal: Principal) -> None:
    """Refuses a caller whose token was revoked after the request was authenticated.

    A later revocation waits for this transaction, and then revokes the token that it created.

    Raises:
        UnauthenticatedError: `unauthenticated`.
    """
    if principal.token_id is not None and not await rows.lock_live(session, principal.token_id):
        raise UnauthenticatedError(
            "unauthenticated", "This token is expired or revoked. Make a new one."
        )


async def _check_end(session: Session, parent: str | None, days: int | None) -> None:
    """Refuses a lifetime that ends a day or more after the parent's.

    Raises:
        InvalidError: `outlives_parent`.
    """
    far = None if days is None else days - 1
    if parent is not None and await rows.expires_within(session, parent, far):
        raise InvalidError(
            "outlives_parent",
            "would outlive the token that makes it: ask for fewer days, or leave this out for the "
            "same end",
            pointer="/expires_in_days",
        )


def list_grantable_scopes(principal: Principal) -> frozenset[Scope]:
    """Returns the scopes that a caller can give to a token.

    The permissions of a token are always limited to those of its user, so a user may give any
    scope. Workers enrol by tokens of their pool.
    """
    allowed = principal.scopes - {Scope.WORKER}
    return allowed | {Scope.READ, Scope.SUBMIT} if Scope.ADMIN in allowed else allowed


def _choose_project(principal: Principal, request: TokenRequest) -> str | None:
    """Returns the ID of the project to which a new token is bound; `None` for all projects."""
    if request.project is not None:
        (membership,) = rights.limit_to_project(principal, request.project).memberships
        return membership.project_id
    if principal.is_bound:
        return rights.find_only_project(principal)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOrigin:
    """The token and the actor that create a token."""

    parent_id: str | None = None
    """The token that creates it."""
    ends_with_parent: bool = False
    """Whether it expires with its parent, whatever lifetime is requested."""
    actor: str
    """Name in the audit log."""


async def issue_token(
    session: Session,
    project_id: str | None,
    user_id: str,
    request: TokenRequest,
    *,
    origin: TokenOrigin | None = None,
) -> TokenView:
    """Creates a token of a user without permission checks; returns it with its secret.

    Args:
        session: The transaction.
        project_id: Project of the token.
        user_id: User of the token.
        request: Name, scopes and lifetime.
        origin: Origin of the token; by default its user, without a parent token.
    """
    origin = origin or TokenOrigin(actor=f"user:{user_id}")
    secret = generate_secret("plr")
    scopes = sorted({scope.value for scope in request.scopes})
    values = {
        "id": new_id("tok"),
        "project_id": project_id,
        "user_id": user_id,
        "parent_id": origin.parent_id,
        "name": request.name,
        "secret_hash": hash_secret(secret),
        "scopes": scopes,
    }
    token = await rows.insert(session, values)
    if origin.ends_with_parent and origin.parent_id is not None:
        await rows.copy_expiry(session, token.id, origin.parent_id)
    elif request.expires_in_days is not None:
        await rows.set_expiry(session, token.id, request.expires_in_days)
    await rows.reload(session, token)
    audit_log.record(
        session,
        "token.create",
        token.id,
        project_id=project_id,
        actor=origin.actor,
        data={"name": token.name, "scopes": scopes},
    )
    (view,) = await build_token_views(session, [token], secret)
    return view


async def list_tokens(session: Session, principal: Principal, page: PageRequest) -> Page[TokenView]:
    """Returns the caller's own tokens, and all tokens of the projects that it maintains.

    A token of one project sees that project's tokens alone.
    """
    keys = build_keyset(page, rows.TOKEN_COLUMNS)
    found = await rows.list_page(session, _seen_by(principal), keys)
    return await pages.cut(found, page, keys, partial(build_token_views, session))


def _seen_by(principal: Principal) -> TokenFilter:
    return TokenFilter(
        user_id=principal.user_id,
        project_ids=principal.projects_with(Permission.PROJECT_CREDENTIALS),
        only_in=principal.project_ids if principal.is_bound else None,
    )


async def rotate_token(
    session: Session, principal: Principal, token_id: str, request: TokenRotation
) -> TokenView:
    """Gives a token a new secret and returns it; the previous one ends after the overlap.

    A login rotates its user's tokens; a token rotates itself and the tokens created with it, so
    that no caller gets a secret with more rights. Maintainers rotate the tokens of service
    accounts.

    Raises:
        NotFoundError: If the caller sees no such token.
        ForbiddenError: `not_yours`, or `missing_scope` if the token has a scope that the caller
            cannot give.
        InvalidError: `outlives_parent` if it would expire later than its parent; `outlives_caller`
            if the caller's token would expire later, or get a secret that expires later.
        ConflictError: `token_ended` if it was revoked or has expired.
    """
    token = await rows.find_token(session, _seen_by(principal), token_id)
    if token is None:
        raise NotFoundError("token")
    if not await _may_rotate(session, principal, token):
        raise ForbiddenError(
            "not_yours",
            "You cannot rotate this token: its owner can, or log in with a browser to rotate your "
            "own.",
        )
    if missing := {Scope(scope) for scope in token.scopes} - list_grantable_scopes(principal):
        raise ForbiddenError(
            "missing_scope", f"This token has the scope {min(missing)}, which you do not have."
        )
    await _check_still_live(session, principal)
    secret = generate_secret("plr")
    if not await rows.rotate(session, token.id, hash_secret(secret), request.overlap_hours):
        raise ConflictError(
            "token_ended", "This token was revoked or has expired. Create a new one."
        )
    await _set_end(session, principal, token, request.expires_in_days)
    await rows.reload(session, token)
    audit_log.record(
        session,
        "token.rotate",
        token.id,
        project_id=token.project_id,
        actor=describe_actor(principal),
        data={"name": token.name, "overlap_hours": request.overlap_hours},
    )
    announce(session, ACCESS)
    (view,) = await build_token_views(session, [token], secret)
    return view


async def _set_end(
    session: Session, principal: Principal, token: TokenRow, days: int | None
) -> None:
    """Sets the expiry of a rotated token, and shortens the life of children that would end later.

    A rotation by a token must not postpone an expiry: neither the token's own, nor by means of a
    token that expires later.
    """
    caller = principal.token_id
    if days is not None:
        await _check_end(session, token.parent_id, days)
        if caller is not None and await rows.expires_within(session, caller, days - 1):
            raise _outlives_caller()
        if caller != token.id or not await rows.expires_within(session, token.id, days):
            await rows.set_expiry(session, token.id, days)
        for limit in filter(None, (token.parent_id, caller)):
            await rows.limit_expiry(session, [token.id], limit)
        await rows.limit_expiry(session, await _load_descendants(session, token.id), token.id)
    elif caller is not None and await rows.outlives(session, token.id, caller):
        raise _outlives_caller()


def _outlives_caller() -> InvalidError:
    return InvalidError(
        "outlives_caller",
        "the secret would be valid for longer than the token with which you ask: ask for fewer "
        "days, or log in with a browser",
        pointer="/expires_in_days",
    )


async def _may_rotate(session: Session, principal: Principal, token: TokenRow) -> bool:
    own = token.user_id == principal.user_id
    if not own and not await access_rows.is_service_account(session, token.user_id):
        return False
    if not own or principal.token_id is None:
        return True
    within = [principal.token_id, *await _load_descendants(session, principal.token_id)]
    return token.id in within


async def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Revokes a token and all tokens that were created with it.

    Raises:
        NotFoundError: If the caller sees no such token.
    """
    token = await rows.find_token(session, _seen_by(principal), token_id)
    if token is None:
        raise NotFoundError("token")
    level = [token.id]
    while level:
        for ended in await rows.revoke_tokens(session, level):
            audit_log.record(
                session,
                "token.revoke",
                ended.id,
                project_id=ended.project_id,
                actor=describe_actor(principal),
                data={"name": ended.name},
            )
        # Read after their parents were revoked, which waits for those who just create one.
        level = await _children(session, level)
    announce(session, ACCESS)


async def _load_descendants(session: Session, token_id: str) -> list[str]:
    """Returns the tokens created with a token, directly or indirectly."""
    found: list[str] = []
    parents = [token_id]
    while parents:
        parents = await _children(session, parents)
        found += parents
    return found


async def _children(session: Session, token_ids: Sequence[str]) -> list[str]:
    made = await rows.list_children(session, token_ids)
    return [token.id for token in made]
