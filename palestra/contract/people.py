"""Users and invitations as they cross the API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from palestra.contract.documents import Document, Patch
from palestra.contract.names import Email, Slug, Title
from palestra.contract.permissions import Role
from palestra.contract.views import View

InvitationState = Literal["open", "redeemed", "expired", "revoked"]


class ProjectRole(Document):
    """A role in a project that an invited person gets."""

    project: Slug
    role: Role


class InvitationRequest(Document):
    """A new invitation, with the role and rights of the invited person."""

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


UserState = Literal["active", "disabled"]
JobsOfUser = Literal["keep", "pause", "cancel", "transfer"]


class UserView(View):
    """A person who may log in, or who is disabled."""

    id: str
    name: str
    """Login name."""
    display_name: str
    email: str | None
    is_admin: bool
    """Whether the user is an administrator of the server."""
    state: UserState
    has_password: bool
    """Without one the user logs in by one-time links only."""
    projects: list[UserProjectView]
    created_at: datetime
    disabled_at: datetime | None
    last_used_at: datetime | None
    """When a login or token of the user was last used; up to 20 s late."""


class OwnedView(View):
    """The numbers of objects that a user owns, over all projects."""

    experiments: int
    runs: int
    jobs: int
    live_jobs: int
    """Jobs that have not ended, paused ones included."""
    workers: int


class UserDetail(UserView):
    """A user with the numbers of objects that the user owns."""

    owned: OwnedView


class AccountChange(Patch):
    """A change of one's own account; members that are left out stay."""

    display_name: Title | None = None
    """`null` removes it: the login name is shown."""
    email: Email | None = None
    """`null` removes it."""


class UserChange(AccountChange):
    """A change of a user; members that are left out stay."""

    is_admin: bool = False


class DisableRequest(Document):
    """A request to disable a user, with what to do with the user's unfinished jobs."""

    jobs: JobsOfUser = "keep"
    """`keep` lets them go on; `transfer` gives those that have not ended, with their runs, to
    another user.
    """
    transfer_to: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Login name or ID of that user."""


class UserDisabled(View):
    """A user who was disabled, with the numbers of unfinished jobs."""

    user: UserDetail
    live_jobs: int
    """Jobs of the user that had not ended."""
    changed_jobs: int
    """Jobs that were paused, cancelled or transferred."""


class UserDeleted(View):
    """The result of a deletion of a user, with the numbers of transferred objects."""

    transferred: dict[str, int]
    """Number of rows by kind, for example `runs`."""
    transferred_to: str | None
    """Login name."""


class LoginLinkView(View):
    """A link that logs a user in once, and lets the user set a password. It is shown once."""

    url: str
    expires_in_seconds: float


class SignedOut(View):
    """The number of browser logins that a sign-out ended."""

    ended_sessions: int
