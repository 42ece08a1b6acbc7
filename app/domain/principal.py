"""The authenticated caller of a request and its permissions. Independent of HTTP and storage."""

from dataclasses import dataclass, field
from typing import Literal

from app.domain.permissions import (
    ADMINISTRATOR_PERMISSIONS,
    OF_NO_PROJECT,
    ROLE_PERMISSIONS,
    list_permitted,
)
from palestra.contract.names import Scope
from palestra.contract.permissions import Permission, Role

Via = Literal["cookie", "token", "enrolment", "worker", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A user's role in a project."""

    project_id: str
    slug: str
    name: str
    role: Role
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller.

    Its permissions are those of the user's present role in the project of an object, limited to
    the credential's scopes. `memberships` holds the projects that the credential covers: if a token
    or a request names one project, that project alone.

    Changes are attributed to `user_id`: the user who logged in or who created the token. An attempt
    token has an `attempt_id` and no scope: it permits only the routes of that attempt. A worker's
    secret has a `worker_id`, an enrolment token of a pool an `enrolment_id`; neither has a user.
    """

    user_id: str
    user: str
    """Login name of the user, or a description of an attempt, a worker or an enrolment token."""
    via: Via
    display_name: str = ""
    scopes: frozenset[Scope] = frozenset()
    memberships: tuple[Membership, ...] = ()
    is_admin: bool = False
    """Whether the caller acts as a server administrator."""
    is_service_account: bool = False
    made_by: str | None = None
    """ID of the user who made a service account."""
    is_bound: bool = False
    """Whether the credential is a token of one project."""
    is_within_project: bool = False
    """Whether the request is limited to one project."""
    token_id: str | None = None
    session_id: str | None = None
    attempt_id: str | None = None
    worker_id: str | None = None
    enrolment_id: str | None = None
    pool: str | None = None
    """The pool of an enrolment token or of a worker."""
    uses_next_secret: bool = False
    """Whether a worker uses the secret of a pending rotation."""
    bound_project_id: str | None = None
    """The project of an attempt, which has no memberships."""
    derivation_key: str = field(default="", repr=False)
    """Key from which this caller's secrets are derived (`app.domain.secrets.derive_secret`).

    Empty unless it is an enrolment token or a worker.
    """

    @property
    def project_ids(self) -> frozenset[str]:
        """The projects whose objects exist for this caller."""
        if self.bound_project_id is not None:
            return frozenset({self.bound_project_id})
        return frozenset(membership.project_id for membership in self.memberships)

    @property
    def person_id(self) -> str:
        """ID of the user as whom the caller counts in limits: of a service account, its maker."""
        return self.made_by or self.user_id

    @property
    def credential_id(self) -> str:
        """ID of the token, login, worker or attempt with which the caller authenticated."""
        of_machine = self.attempt_id or self.worker_id or self.enrolment_id
        return of_machine or self.token_id or self.session_id or ""

    def permits(self, permission: Permission, project_id: str | None = None) -> bool:
        """Returns whether the caller has a permission.

        Args:
            permission: The permission.
            project_id: Project of the object; `None` asks for a permission of the server, or for
                one of a project in at least one project.
        """
        if permission not in list_permitted(self.scopes):
            return False
        if permission is Permission.ACCOUNT:
            return self.user_id != ""
        if permission in ADMINISTRATOR_PERMISSIONS:
            return self.is_admin
        return any(
            permission in ROLE_PERMISSIONS[membership.role]
            for membership in self.memberships
            if project_id in {None, membership.project_id}
        )

    def permissions_in(self, project_id: str) -> list[Permission]:
        """Returns the caller's permissions in a project."""
        return [
            permission
            for permission in Permission
            if permission not in OF_NO_PROJECT and self.permits(permission, project_id)
        ]

    def projects_with(self, permission: Permission) -> frozenset[str]:
        """Returns the IDs of the projects in which the caller has a permission."""
        return frozenset(
            membership.project_id
            for membership in self.memberships
            if self.permits(permission, membership.project_id)
        )
