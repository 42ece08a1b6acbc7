"""A person's own account: profile, password and browser logins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from app.db.engine import ACCESS, Database, Session, announce
from app.db.models.access import LoginSessionRow
from app.db.models.projects import UserRow
from app.db.repositories import accounts as rows
from app.db.repositories import users as user_rows
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.access import passwords, users
from app.services.access.audit_actor import describe_actor
from app.services.access.logins import Account
from app.services.access.sessions import end_all
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from app.services.views import pages
from app.services.views.columns import build_view
from app.settings import Settings
from palestra.contract.account import AccountView, LoginSessionView, PasswordChange, PasswordChanged
from palestra.contract.people import AccountChange, SignedOut, UserProjectView
from palestra.contract.views import Page

FRESH_SECONDS: Final = 900.0
"""Time for which a login that a link opened may set a password without the current one."""

Confirmation = Literal["current password", "login link", "login"]
"""What shows that the person sets the password: `login` where there was none to ask for."""


async def get(session: Session, principal: Principal) -> AccountView:
    """Returns the caller's account."""
    return await _view(session, principal, await users.find(session, principal.user_id))


async def change(session: Session, principal: Principal, request: AccountChange) -> AccountView:
    """Changes the members of the account that are set in `request`."""
    user = await users.find(session, principal.user_id, lock=True)
    changed = users.list_changes(request)
    if changed:
        user_rows.change(user, changed)
        _record(session, "user.change", user.id, principal, changed)
    return await _view(session, principal, user)


async def _view(session: Session, principal: Principal, user: UserRow) -> AccountView:
    confirmation = await _confirmation(session, principal, user)
    return build_view(
        AccountView,
        user,
        has_password=user.password_hash is not None,
        current_password_needed=confirmation == "current password",
        projects=[
            UserProjectView(project_id=one.project_id, slug=one.slug, name=one.name, role=one.role)
            for one in principal.memberships
        ],
    )


async def _confirmation(session: Session, principal: Principal, user: UserRow) -> Confirmation:
    is_fresh = principal.session_id is not None and await rows.is_opened_by_link(
        session, principal.session_id, FRESH_SECONDS
    )
    if is_fresh:
        return "login link"
    return "login" if user.password_hash is None else "current password"


@dataclass(frozen=True, slots=True)
class PasswordOwner:
    """A caller who sets a password, as stored at the beginning of the request."""

    account: Account
    confirmation: Confirmation
    names: tuple[str, ...]
    """Words that make a password easy to guess."""


async def find_password_owner(
    database: Database, principal: Principal, request: PasswordChange
) -> PasswordOwner:
    """Returns the caller, and how the caller must confirm the new password.

    Raises:
        ForbiddenError: `login_needed` for a token whose user has no password: a token must not
            set a password that remains valid after the token has ended.
        InvalidError: `current_password_needed` if it is needed and missing.
    """
    async with database.read() as session:
        user = await users.find(session, principal.user_id)
        confirmation = await _confirmation(session, principal, user)
    if confirmation == "login" and principal.session_id is None:
        raise ForbiddenError(
            "login_needed",
            "A token cannot set the first password. Log in with a browser, for example by a link "
            "of `palestra login-link`, and set it on the page Account.",
        )
    if confirmation == "current password" and request.current_password is None:
        raise InvalidError(
            "current_password_needed",
            "Give the current password. If it is lost, log in by a link and set a new one within "
            "15 minutes: `palestra login-link` on the server's machine prints one, and an "
            "administrator can make one.",
            pointer="/current_password",
        )
    names = tuple(filter(None, (user.name, user.display_name, user.email)))
    account = Account(f"user:{user.id}", user.id, user.password_hash)
    return PasswordOwner(account, confirmation, names)


async def check_current_password(owner: PasswordOwner, password: str | None) -> None:
    """Refuses a password that is not the caller's current one.

    Raises:
        ForbiddenError: `wrong_password`.
    """
    verified = await passwords.verify(owner.account.password_hash, password or "")
    if not verified.is_correct:
        raise ForbiddenError(
            "wrong_password",
            "The current password is wrong. Type it again.",
            pointer="/current_password",
        )


async def set_password(
    database: Database,
    principal: Principal,
    owner: PasswordOwner,
    password: str,
    origin: RequestOrigin,
) -> PasswordChanged:
    """Sets a password, and ends the caller's other browser logins and all login links.

    The password is hashed before the transaction begins.

    Raises:
        InvalidError: `password_length` or `weak_password`.
        ConflictError: `password_changed` if another request has set one meanwhile.
    """
    new_hash = await passwords.hash_new(password, *owner.names)
    async with database.write() as session:
        audit_log.set_origin(session, origin)
        stored = owner.account.password_hash
        if not await rows.replace_password(session, principal.user_id, stored, new_hash):
            raise ConflictError(
                "password_changed", "The password was changed meanwhile. Load the page again."
            )
        ended = await end_all(session, principal.user_id, keep=principal.session_id)
        data = {"confirmed_by": owner.confirmation, "ended_sessions": ended}
        _record(session, "password.set", principal.user_id, principal, data)
    return PasswordChanged(ended_sessions=ended)


async def list_sessions(
    session: Session, principal: Principal, settings: Settings, page: PageRequest
) -> Page[LoginSessionView]:
    """Returns a page of the caller's browser logins that have not ended."""
    keys = build_keyset(page, rows.COLUMNS)
    found = await rows.list_live_sessions(
        session,
        principal.user_id,
        (settings.session_idle_seconds, settings.session_max_seconds),
        keys,
    )
    return await pages.cut(found, page, keys, partial(_session_views, principal))


async def _session_views(
    principal: Principal, found: Sequence[LoginSessionRow]
) -> list[LoginSessionView]:
    return [
        build_view(
            LoginSessionView,
            row,
            address=row.last_used_address,
            is_present=row.id == principal.session_id,
        )
        for row in found
    ]


async def end_session(session: Session, principal: Principal, session_id: str) -> None:
    """Ends a browser login of the caller. Ending it twice changes nothing.

    Raises:
        NotFoundError: If the caller has none of that ID.
    """
    ended = await rows.end_session(session, principal.user_id, session_id)
    if ended is None:
        raise NotFoundError("login")
    if ended:
        _record(session, "login.close", session_id, principal, {})
        announce(session, ACCESS)


async def sign_out(session: Session, principal: Principal) -> SignedOut:
    """Ends all browser logins and login links of the caller; tokens stay."""
    ended = await end_all(session, principal.user_id)
    _record(session, "user.sign_out", principal.user_id, principal, {"sessions": ended})
    return SignedOut(ended_sessions=ended)


def _record(
    session: Session, action: str, object_id: str, principal: Principal, data: Mapping[str, object]
) -> None:
    audit_log.record(
        session, action, object_id, project_id=None, actor=describe_actor(principal), data=data
    )
