"""People as server administrators see and change them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import UserRow
from app.db.repositories import users as rows
from app.db.repositories.users import UserFilter
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.access import logins
from app.services.access.audit_actor import describe_actor
from app.services.access.invitations import require_user_management
from app.services.access.sessions import end_all
from app.services.audit import audit_log
from app.services.views import pages
from app.services.views.columns import build_view
from palestra.contract.people import (
    AccountChange,
    LoginLinkView,
    OwnedView,
    SignedOut,
    UserChange,
    UserDetail,
    UserProjectView,
    UserView,
)
from palestra.contract.views import Page

__all__ = [
    "UserFilter",
    "change",
    "enable",
    "find",
    "get",
    "keep_an_administrator",
    "list_users",
    "load_detail",
    "lock_administrators",
    "reset_password",
    "sign_out",
]


async def list_users(
    session: Session, principal: Principal, wanted: UserFilter, page: PageRequest
) -> Page[UserView]:
    """Returns a page of all people; sorts by `name` and `created_at`."""
    require_user_management(principal)
    keys = build_keyset(page, rows.COLUMNS)
    found = await rows.list_page(session, wanted, keys)
    return await pages.cut(found, page, keys, partial(_views, session))


async def get(session: Session, principal: Principal, wanted: str) -> UserDetail:
    """Returns a person by ID or login name.

    Raises:
        NotFoundError: If there is no such person.
    """
    require_user_management(principal)
    return await load_detail(session, await find(session, wanted))


async def find(session: Session, wanted: str, *, lock: bool = False) -> UserRow:
    """Returns the row of a person by ID or login name.

    Raises:
        NotFoundError: If there is no such person.
    """
    user = await rows.find_person(session, wanted, lock=lock)
    if user is None:
        raise NotFoundError("user")
    return user


async def change(
    session: Session, principal: Principal, wanted: str, request: UserChange
) -> UserDetail:
    """Changes the properties of a person that are set in `request`.

    Raises:
        NotFoundError: If there is no such person.
        ConflictError: `last_administrator`.
    """
    require_user_management(principal)
    administrators = await lock_administrators(session, principal)
    user = await find(session, wanted, lock=True)
    changed = list_changes(request)
    if "is_admin" in request.model_fields_set and user.is_admin != request.is_admin:
        if not request.is_admin:
            keep_an_administrator(administrators, user)
            await rows.revoke_invitations_of(session, user.id)
        changed["is_admin"] = request.is_admin
        announce(session, ACCESS)
    if changed:
        rows.change(user, changed)
        _record(session, "user.change", principal, user, changed)
    return await load_detail(session, user)


async def lock_administrators(session: Session, principal: Principal) -> set[str]:
    """Returns the server administrators, whose rows stay locked until the commit.

    Raises:
        ForbiddenError: `missing_permission` if the caller is none of them any more.
    """
    administrators = await rows.lock_administrators(session)
    require_user_management(
        replace(principal, is_admin=principal.is_admin and principal.user_id in administrators)
    )
    return administrators


def list_changes(request: AccountChange) -> dict[str, object]:
    """Returns the display name and the e-mail address that a request gives."""
    changes: dict[str, object] = {}
    if "display_name" in request.model_fields_set:
        changes["display_name"] = request.display_name or ""
    if "email" in request.model_fields_set:
        changes["email"] = request.email
    return changes


def keep_an_administrator(administrators: set[str], user: UserRow) -> None:
    """Refuses to take away the last server administrator.

    Args:
        administrators: The result of `lock_administrators` in this transaction.
        user: The administrator who is to be demoted, disabled or deleted.

    Raises:
        ConflictError: `last_administrator`.
    """
    if administrators == {user.id}:
        raise ConflictError(
            "last_administrator",
            "This user is the last administrator of the server. Make another user an "
            "administrator first.",
        )


async def enable(session: Session, principal: Principal, wanted: str) -> UserDetail:
    """Lets a disabled person log in again; tokens that have not expired are valid again.

    Raises:
        NotFoundError: If there is no such person.
    """
    require_user_management(principal)
    await lock_administrators(session, principal)
    user = await find(session, wanted, lock=True)
    if user.disabled_at is not None:
        await rows.set_disabled(session, user, disabled=False)
        _record(session, "user.enable", principal, user, {})
    return await load_detail(session, user)


async def reset_password(
    session: Session, principal: Principal, wanted: str, seconds: float, server_url: str
) -> LoginLinkView:
    """Returns a link with which a person sets a new password; the old one is valid until then.

    Args:
        session: A writing session.
        principal: A server administrator.
        wanted: ID or login name of the person.
        seconds: Life of the link.
        server_url: Address of the server in the link.

    Raises:
        NotFoundError: If there is no such person.
        ConflictError: `user_disabled`.
    """
    require_user_management(principal)
    await lock_administrators(session, principal)
    user = await find(session, wanted)
    if user.disabled_at is not None:
        raise ConflictError("user_disabled", "This user is disabled. Enable the user first.")
    code = await logins.make_link(session, user.id, seconds, by=describe_actor(principal))
    # The page of a login link logs in at once; with `reset` it asks for the new password first.
    url = f"{server_url}/login?reset=true#code={code}"
    return LoginLinkView(url=url, expires_in_seconds=seconds)


async def sign_out(session: Session, principal: Principal, wanted: str) -> SignedOut:
    """Ends all browser logins and login links of a person; tokens stay.

    Raises:
        NotFoundError: If there is no such person.
    """
    require_user_management(principal)
    user = await find(session, wanted)
    ended = await end_all(session, user.id)
    _record(session, "user.sign_out", principal, user, {"sessions": ended})
    return SignedOut(ended_sessions=ended)


async def find_receiver(session: Session, wanted: str, giver: UserRow, pointer: str) -> UserRow:
    """Returns the person to whom the objects of another person are transferred.

    Raises:
        InvalidError: `no_such_user`, also for a disabled one; `transfer_to_self`.
    """
    found = await rows.find_person(session, wanted, lock=True)
    if found is None or found.disabled_at is not None:
        raise InvalidError(
            "no_such_user",
            "Nobody of this name may log in. Name an active user.",
            pointer=pointer,
        )
    if found.id == giver.id:
        raise InvalidError(
            "transfer_to_self", "Name another user: this one is leaving.", pointer=pointer
        )
    return found


def _record(
    session: Session, action: str, principal: Principal, user: UserRow, data: dict[str, object]
) -> None:
    audit_log.record(
        session, action, user.id, project_id=None, actor=describe_actor(principal), data=data
    )


async def load_detail(session: Session, user: UserRow) -> UserDetail:
    """Returns the view of a person with the numbers of objects that the person owns."""
    (view,) = await _views(session, [user])
    counts = await rows.count_owned(session, user.id)
    owned = OwnedView(**{name: counts.get(name, 0) for name in OwnedView.model_fields})
    return UserDetail(**dict(view), owned=owned)


async def _views(session: Session, users: Sequence[UserRow]) -> list[UserView]:
    ids = [user.id for user in users]
    memberships = await rows.load_memberships(session, ids)
    used = await rows.load_last_used(session, ids)
    return [
        build_view(
            UserView,
            user,
            state="active" if user.disabled_at is None else "disabled",
            has_password=user.password_hash is not None,
            projects=[
                UserProjectView(
                    project_id=project.id, slug=project.slug, name=project.name, role=role
                )
                for role, project in memberships.get(user.id, ())
            ],
            last_used_at=used.get(user.id),
        )
        for user in users
    ]
