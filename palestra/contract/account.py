"""A person's own account as it crosses the API: profile, password and browser logins."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.people import UserProjectView
from palestra.contract.views import View


class AccountView(View):
    """The caller's own account."""

    id: str
    name: str
    """Login name."""
    display_name: str
    """Shown instead of the login name, if not empty."""
    email: str | None
    is_admin: bool
    """Whether the user is an administrator of the server."""
    has_password: bool
    """Without a password, the user logs in by one-time links only."""
    current_password_needed: bool
    """Whether this caller must confirm a new password with the current one."""
    projects: list[UserProjectView]
    created_at: datetime


class PasswordChange(Document):
    """A new password of the caller."""

    password: Annotated[str, Field(min_length=1, max_length=1_024)]
    """12 characters or more, and not easy to guess."""
    current_password: Annotated[str, Field(min_length=1, max_length=1_024)] | None = None
    """Needed where a password is set.

    A login that a one-time link opened within the last 15 minutes needs none.
    """


class PasswordChanged(View):
    """The number of browser logins that a change of password ended."""

    ended_sessions: int
    """Other browser logins of the user."""


class LoginSessionView(View):
    """A browser login of the caller that has not ended."""

    id: str
    browser: str | None
    """Browser and system in words, for example `Firefox on Linux`; `null` if unknown."""
    address: str | None
    """Address of the latest use."""
    opened_by: Literal["password", "link", "invitation"] | None
    """`null` for a login that an older version of the server opened."""
    is_present: bool
    """Whether it is the login of this request."""
    created_at: datetime
    last_used_at: datetime
    """Time of the latest use, up to 20 s late; a waiting stream does not count as one."""
