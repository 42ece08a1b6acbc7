"""Tokens, logins and sessions as they cross the API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.names import Scope, Slug, Title
from palestra.contract.people import UserProjectView
from palestra.contract.permissions import Permission, Role
from palestra.contract.views import FieldProblem, View


class TokenRequest(Document):
    """A new API token."""

    name: Title
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=4)]
    project: Slug | None = None
    """The project to which the token is limited; `null`: all projects of its user."""
    expires_in_days: Annotated[int, Field(ge=1, le=3_650)] | None = 90
    """Life; `null` never ends, where the server allows it.

    A token cannot create a token that lives longer than itself.
    """


class TokenRotation(Document):
    """Gives a token a new secret."""

    overlap_hours: Annotated[int, Field(ge=0, le=720)] = 24
    """Hours for which the previous secret stays valid; 0 ends it at once."""
    expires_in_days: Annotated[int, Field(ge=1, le=3_650)] | None = None
    """New life of the token, from now on; `null` keeps the time at which it ends."""


class TokenView(View):
    """An API token. Only the answers to its creation and rotations hold the `secret`."""

    id: str
    parent_id: str | None = None
    """The token that created it; revoking that token revokes it too.

    `null` for one that a login or the server's console made.
    """
    user: str = ""
    """Login name of the user whose permissions it carries."""
    project: str | None = None
    """Slug of the project to which it is limited; `null`: all projects of its user."""
    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    previous_until: datetime | None = None
    """Time until which the secret before the latest rotation is valid."""
    last_used_at: datetime | None
    last_used_address: str | None = None
    """Address of the latest use."""
    revoked_at: datetime | None
    secret: str | None = None


class LoginOptions(View):
    """The login methods that the server offers on the login page."""

    password: bool
    """Whether anybody has set a password.

    Without a password, only links of `palestra login-link` log a browser in.
    """


class LoginRequest(Document):
    """Browser login with user name and password."""

    user: Annotated[str, Field(min_length=1, max_length=64)]
    password: Annotated[str, Field(min_length=1, max_length=1_024)]


class SetupRequest(Document):
    """Redeems a one-time setup or login link, or an invitation."""

    code: Annotated[str, Field(min_length=1, max_length=128)]
    user: Title | None = None
    """Login name of the first admin or of the invited person."""
    display_name: Title | None = None
    """For an invitation."""
    password: Annotated[str, Field(min_length=12, max_length=1_024)] | None = None
    """Sets the user's password; an invitation needs one.

    Without one, later logins need a new link from `palestra login-link`.
    """
    check_only: bool = False
    """Asks what the link is for and whether name and password are accepted; nothing is used up."""


class LinkPreview(View):
    """The purpose of a one-time link or an invitation, before it is redeemed."""

    kind: Literal["login", "invitation"]
    user: str | None
    """Login name of the user, or the one that is proposed to the invited person."""
    display_name: str
    is_admin: bool
    """Whether the user is, or becomes, an administrator of the server."""
    projects: list[UserProjectView]
    """Roles that the invited person gets."""
    invited_by: str | None
    """Login name of the administrator who made the invitation."""
    problems: list[FieldProblem]
    """Why name and password of the request would be refused."""


class MembershipView(View):
    """A project of the caller, with the caller's role and permissions in it."""

    project_id: str
    slug: str
    name: str
    role: Role
    archived: bool
    permissions: list[Permission]
    """Permissions of the role, limited to the credential's scopes."""


class SessionView(View):
    """The authenticated user or token of the request."""

    user: str
    """Login name."""
    user_id: str = ""
    display_name: str = ""
    is_admin: bool = False
    """Whether the caller acts as an administrator of the server."""
    project: str
    """Slug of the project if the caller has exactly one, else empty."""
    projects: list[MembershipView] = Field(default_factory=list)
    permissions: list[Permission] = Field(default_factory=list)
    """Permissions that belong to no project."""
    scopes: list[Scope]
    csrf_token: str | None
    """To be sent as `X-CSRF-Token` with every request that changes something.

    `null` for bearer tokens.
    """
    via: Literal["cookie", "token"]
    setup_needed: bool = False
