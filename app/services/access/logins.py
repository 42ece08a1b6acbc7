"""Browser logins: by password, by setup link and by login link."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.db.engine import Database, Session
from app.db.models.projects import UserRow
from app.db.repositories import access as rows
from app.db.repositories import users as user_rows
from app.domain.errors import LoginRefusedError
from app.domain.secrets import generate_secret, hash_secret, is_well_formed
from app.services.access import invitations, passwords
from app.services.access.login_names import build_name_taken, normalise_login_name
from app.services.access.sessions import Login, end_all, open_login
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from palestra.contract.access import (
    LoginOptions,
    SetupRequest,
)
from palestra.contract.names import slugify

_NEW_LINK: Final = (
    "On the server's machine, `palestra login-link` prints a new link that logs you in "
    "once: run it where `palestra up` was started, or "
    "name that place with --data-dir."
)


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a login by password."""

    key: str
    """Key under which guesses are counted: the same for every spelling of the name."""
    user_id: str | None = None
    password_hash: str | None = field(default=None, repr=False)
    """`None` if no user has the name, or the user has no password or is disabled."""


async def list_login_options(session: Session) -> LoginOptions:
    """Returns the login methods that are available."""
    return LoginOptions(password=await rows.has_password(session))


async def find_account(database: Database, name: str) -> Account:
    """Returns the account that a login names, or a substitute account for an unknown name."""
    async with database.read() as session:
        user = await rows.find_user_by_login(session, name)
    if user is None:
        return Account(f"name:{slugify(name, 64, substitute=name.casefold())}")
    can_log_in = user.disabled_at is None
    return Account(f"user:{user.id}", user.id, user.password_hash if can_log_in else None)


async def log_in(
    database: Database, account: Account, password: str, origin: RequestOrigin
) -> Login:
    """Returns a new browser login for an account and a password.

    No session is open while the password is verified.

    Raises:
        LoginRefusedError: For an unknown user or a wrong password, with the same message and
            as much work.
    """
    verified = await passwords.verify(account.password_hash, password)
    user_id, stored = account.user_id, account.password_hash
    if user_id is None or stored is None or not verified.is_correct:
        raise _wrong_login(user_id)
    async with database.write() as session:
        audit_log.set_origin(session, origin)
        if not await rows.replace_password_hash(
            session, user_id, stored, verified.new_hash or stored
        ):
            raise _wrong_login(user_id)
        return await open_login(session, user_id, "password", origin)


def _wrong_login(user_id: str | None) -> LoginRefusedError:
    return LoginRefusedError(
        "wrong_login",
        f"User name or password is wrong. No password was set, or it is lost? {_NEW_LINK}",
        user_id,
    )


async def make_link(
    session: Session,
    user_id: str,
    seconds: float,
    *,
    by: str | None = None,
    action: str = "link.create",
    data: Mapping[str, object] | None = None,
) -> str:
    """Returns the code of a new one-time setup or login link of a user.

    Args:
        session: A writing session.
        user_id: User whom the link logs in.
        seconds: Life of the link.
        by: User who made the link, for the audit log; `user_id` by default.
        action: Action of the audit entry.
        data: Data of the audit entry.
    """
    code = generate_secret("pll")
    await rows.insert_link(session, hash_secret(code), user_id, seconds)
    maker = by or f"user:{user_id}"
    audit_log.record(session, action, user_id, project_id=None, actor=maker, data=data)
    return code


async def has_logged_in(session: Session, user_id: str) -> bool:
    """Returns whether the user has ever logged in with a browser."""
    return await rows.has_logged_in(session, user_id)


async def redeem(database: Database, request: SetupRequest, origin: RequestOrigin) -> Login:
    """Returns a new browser login for a one-time code, which is then used up.

    The code is that of a login link or of an invitation. Sets name and password where they are
    given; an invitation needs both. Guessed codes take no write transaction, and a
    new password is hashed outside of it.

    Raises:
        LoginRefusedError: If the code is unknown, used, expired or revoked.
        InvalidError: If the password is too easy to guess, or an invitation lacks something.
        ConflictError: If another user has the name.
    """
    code_hash = hash_secret(request.code) if is_well_formed(request.code) else ""
    async with database.read() as session:
        user = await rows.find_user_by_link(session, code_hash)
    if user is None:
        if (login := await invitations.redeem(database, request, origin)) is None:
            raise build_link_used()
        return login
    password_hash = (
        None
        if request.password is None
        else await passwords.hash_new(request.password, request.user or user.name)
    )
    async with database.write() as session:
        audit_log.set_origin(session, origin)
        used = await rows.use_link(session, code_hash)
        found = None if used is None else await rows.find_holder(session, used)
        if found is None:
            raise build_link_used()
        if request.user is not None and request.user != found.user.name:
            await _rename(session, found.user, request.user)
        if password_hash is not None:
            await _set_password(session, found.user, password_hash)
        return await open_login(session, found.user.id, "link", origin)


def build_link_used() -> LoginRefusedError:
    """Returns the refusal of a code that is unknown, used or expired."""
    return LoginRefusedError("link_used", f"This link was used or has expired. {_NEW_LINK}")


async def _rename(session: Session, user: UserRow, typed: str) -> None:
    """Sets a user's login name, and from the typed text the display name if there is none."""
    name, shown = normalise_login_name(typed, pointer="/user")
    changed = {"name": name} if name != user.name else {}
    if changed and not await rows.rename_user(session, user.id, name):
        raise build_name_taken("/user")
    if shown and not user.display_name:
        changed["display_name"] = shown
        user_rows.change(user, {"display_name": shown})
    if changed:
        audit_log.record(
            session,
            "user.change",
            user.id,
            project_id=None,
            actor=f"user:{user.id}",
            data=changed,
        )


async def _set_password(session: Session, user: UserRow, password_hash: str) -> None:
    user_rows.change(user, {"password_hash": password_hash})
    ended = await end_all(session, user.id)
    audit_log.record(
        session,
        "password.set",
        user.id,
        project_id=None,
        actor=f"user:{user.id}",
        data={"confirmed_by": "link", "ended_sessions": ended},
    )
