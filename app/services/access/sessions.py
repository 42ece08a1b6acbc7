"""Opens and ends browser logins."""

from dataclasses import dataclass
from typing import Literal

from app.db.engine import ACCESS, Session, announce
from app.db.repositories import access as rows
from app.db.repositories import login_sessions as login_rows
from app.db.repositories import users as user_rows
from app.db.repositories.callers import LoginCaller
from app.domain.browsers import describe_browser
from app.domain.errors import UnauthenticatedError
from app.domain.principal import Principal
from app.domain.secrets import derive_csrf_token, generate_secret, hash_secret
from app.services.access.principals import build_user_of_login
from app.services.audit import audit_log
from app.services.audit.audit_log import RequestOrigin
from palestra.contract.names import new_id

OpenedBy = Literal["password", "link", "invitation"]


@dataclass(frozen=True, slots=True)
class Login:
    """A new browser login; its secret is sent only in the session cookie."""

    principal: Principal
    secret: str

    @property
    def csrf(self) -> str:
        """The token that the dashboard sends with every modifying request."""
        return derive_csrf_token(self.secret)


async def open_login(
    session: Session, user_id: str, opened_by: OpenedBy, origin: RequestOrigin
) -> Login:
    """Opens a browser login of a user who has authenticated.

    Args:
        session: A writing session.
        user_id: User who logs in.
        opened_by: Method by which the user authenticated.
        origin: Address and browser of the request.

    Raises:
        UnauthenticatedError: If the user is disabled.
    """
    found = await rows.find_holder(session, user_id)
    if found is None:
        raise UnauthenticatedError("wrong_login", "This login is disabled. Ask an administrator.")
    secret = generate_secret("pls")
    values = {
        "id": new_id("ses"),
        "user_id": user_id,
        "secret_hash": hash_secret(secret),
        "last_used_address": origin.address,
        "browser": describe_browser(origin.user_agent),
        "opened_by": opened_by,
    }
    opened = await login_rows.insert(session, values)
    audit_log.record(
        session,
        "login.open",
        opened.id,
        project_id=None,
        actor=f"user:{user_id}",
        data={"by": opened_by},
    )
    caller = LoginCaller(found.calling_user, found.memberships, opened.id)
    return Login(build_user_of_login(caller), secret)


async def log_out(session: Session, principal: Principal) -> None:
    """Ends the caller's browser login."""
    if principal.session_id is not None:
        await login_rows.end_login(session, principal.session_id)
        audit_log.record(
            session,
            "login.close",
            principal.session_id,
            project_id=None,
            actor=f"user:{principal.user_id}",
        )
        announce(session, ACCESS)


async def end_all(session: Session, user_id: str, *, keep: str | None = None) -> int:
    """Ends the logins and login links of a user, but for the login `keep`.

    Live streams of the ended logins are closed. Returns the number of ended logins.
    """
    ended = await user_rows.end_access(session, user_id, keep=keep)
    announce(session, ACCESS)
    return ended
