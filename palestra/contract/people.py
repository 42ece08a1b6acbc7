"""Users and invitations as they cross the API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from palestra.contract.documents import Document
from palestra.contract.names import Slug, Title
from palestra.contract.permissions import Role
from palestra.contract.views import View

Email = Annotated[
    str, StringConstraints(pattern=r"^[^\s@\x00-\x1f]+@[^\s@\x00-\x1f]+$", max_length=254)
]
"""An e-mail address, of which only the form `name@host` is checked."""

InvitationState = Literal["open", "redeemed", "expired", "revoked"]


class ProjectRole(Document):
    """A role in a project that an invited person gets."""

    project: Slug
    role: Role


class InvitationRequest(Document):
    """A new invitation: what the invited person will be."""

    name: Slug | None = None
    """Login name that is proposed; `null`: the person chooses one."""
    display_name: Title | None = None
    email: Email | None = None
    is_admin: bool = False
    """Whether the person becomes an administrator of the server."""
    projects: Annotated[tuple[ProjectRole, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _projects_differ(self) -> "InvitationRequest":
        if len({one.project for one in self.projects}) != len(self.projects):
            raise ValueError("must name each project once: a person has one role in a project")
        return self


class InviteRequest(Document):
    """Invites one or several people."""

    invitations: Annotated[tuple[InvitationRequest, ...], Field(min_length=1, max_length=50)]
    expires_in_hours: Annotated[int, Field(ge=1, le=720)] = 168


class UserProjectView(View):
    """A project of a user, with the role there."""

    project_id: str
    slug: str
    name: str
    role: Role


class InvitationView(View):
    """An invitation. Only the answer to its creation holds the link."""

    id: str
    name: str | None
    """Login name that is proposed."""
    display_name: str
    email: str | None
    is_admin: bool
    projects: list[UserProjectView]
    """Roles that the person gets; projects that were deleted since are left out."""
    state: InvitationState
    created_by: str | None
    """Login name; `null` once that user is deleted."""
    created_at: datetime
    expires_at: datetime
    redeemed_at: datetime | None
    redeemed_by: str | None
    """Login name of the new user."""
    revoked_at: datetime | None
    url: str | None = None
    """The link that the person opens; whoever opens it first becomes that user."""


class InvitationsView(View):
    """New invitations with their links, which are not shown again."""

    items: list[InvitationView]
