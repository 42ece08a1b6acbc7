"""Login links from the shell of the server's machine, whatever has become of the passwords."""

import os
import pwd
from typing import Final

from app.db.engine import Session
from app.db.models.projects import UserRow
from app.db.repositories import access as rows
from app.db.repositories import users as user_rows
from app.domain.errors import ConflictError
from app.services.access import logins
from app.services.audit import audit_log

ACTOR: Final = "daemon:console"
_MAX_NAME_LENGTH: Final = 64


async def find_person(session: Session, typed: str, *, enable: bool) -> str:
    """Returns the ID of the person who has a name and may log in by a link.

    Args:
        session: A writing session.
        typed: Login name, or a display name that only one person has.
        enable: Whether to enable the person, who must administer the server, if disabled.

    Raises:
        ConflictError: `no_such_user`; `user_disabled` for a disabled person without `enable`;
            `not_admin` with `enable` for anybody else than an administrator.
    """
    user = await rows.find_user_by_login(session, typed)
    if user is None:
        raise ConflictError(
            "no_such_user",
            f"Nobody of the name {typed} may log in. `bootstrap --user NAME` makes an "
            "administrator of the server.",
        )
    if enable and not user.is_admin:
        raise ConflictError(
            "not_admin",
            f"{user.name} is no administrator of the server, and --enable is for these. Log in as "
            f"one and run `palestra users enable {user.name}`.",
        )
    if user.disabled_at is not None:
        await _enable(session, user, enable=enable)
    return user.id


async def _enable(session: Session, user: UserRow, *, enable: bool) -> None:
    if not enable:
        remedy = (
            "--enable lets this administrator in again"
            if user.is_admin
            else f"log in as an administrator and run `palestra users enable {user.name}`"
        )
        raise ConflictError("user_disabled", f"The login of {user.name} is disabled: {remedy}.")
    await user_rows.set_disabled(session, user, disabled=False)
    audit_log.record(
        session, "user.enable", user.id, project_id=None, actor=ACTOR, data=find_shell_user()
    )


async def make_link(session: Session, user_id: str, seconds: float) -> str:
    """Returns the code of a one-time link, which no limit on logins delays.

    The audit log names it `login.break_glass` for a server administrator, with the user of the
    shell.

    Args:
        session: A writing session.
        user_id: A person who may log in.
        seconds: Life of the link.
    """
    found = await rows.find_holder(session, user_id)
    is_admin = found is not None and found.user.is_admin
    action = "login.break_glass" if is_admin else "link.create"
    return await logins.make_link(
        session, user_id, seconds, by=ACTOR, action=action, data=find_shell_user()
    )


def find_shell_user() -> dict[str, str]:
    """Returns the user who runs this process, as far as the system shows.

    `shell_user` is the account of the process; `sudo_user` is the name that sudo sets, which a
    process of root could have set as well.
    """
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid {os.getuid()}"
    found = {"shell_user": name[:_MAX_NAME_LENGTH]}
    if sudo := os.environ.get("SUDO_USER"):
        found["sudo_user"] = sudo[:_MAX_NAME_LENGTH]
    return found
