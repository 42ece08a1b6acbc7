"""Projects and their members as they cross the API."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from palestra.contract.documents import Document, Patch
from palestra.contract.names import MAX_STEP, Name, Slug, Text, Title
from palestra.contract.permissions import Permission, Role
from palestra.contract.views import View

StorageLimit = Annotated[int, Field(ge=0, le=MAX_STEP)]
"""Bytes."""


class ProjectRequest(Document):
    """A new project, whose creator becomes a maintainer."""

    name: Title
    slug: Slug | None = None
    """Its name in addresses; made of `name` by default. It stays when the project is renamed."""
    description: Text = ""
    storage_limit: StorageLimit | None = None
    """Bytes of stored files from which on nothing can be submitted; `null` for no limit."""
    pools: Annotated[tuple[Name, ...], Field(max_length=1_000)] | None = None
    """Pools that admit it from the start; `null`: the pool `default`, where there is one."""


class ProjectChange(Patch):
    """A change of a project; members that are left out stay as they are."""

    name: Title | None = None
    description: Text | None = None
    storage_limit: StorageLimit | None = None
    """Bytes, `null` removes the limit. An administrator of the server alone may change it."""


class ProjectView(View):
    """A project with the numbers of its objects, and the caller's permissions in it."""

    id: str
    slug: str
    """Its name in addresses."""
    name: str
    description: str
    created_at: datetime
    archived_at: datetime | None
    """While set, nothing can be submitted to it, and it can be deleted."""
    role: Role | None
    """The caller's role; `null` for an administrator of the server who is no member."""
    permissions: list[Permission]
    """Permissions of the role, limited to the credential's scopes."""
    members: int
    experiments: int
    runs: int
    jobs: int
    storage_used: int
    """Bytes of stored files; equal files of a project are stored once."""
    storage_limit: int | None
    """Bytes from which on nothing can be submitted; `null` for no limit."""


class DeletedProjectView(View):
    """A deleted project, as administrators of the server see it."""

    id: str
    slug: str
    """Taken until its content is removed, and so is the name."""
    name: str
    description: str
    created_at: datetime
    deleted_at: datetime
    deleted_by: str | None
    """Login name of who deleted it; `null` once that user is gone."""
    restorable_until: datetime
    """Until then it can be restored; its content is removed after it."""
    removal_started_at: datetime | None
    """Since when its content is being removed; it cannot be restored any more."""
    unfinished_jobs: int
    """Jobs that were told to end and have not ended yet."""
    experiments: int
    runs: int
    jobs: int
    storage_used: int
    """Bytes of stored files."""


class MembershipRequest(Document):
    """The role that a user gets in a project."""

    role: Role


class MemberView(View):
    """A member of a project."""

    user_id: str
    user: str
    """Login name."""
    display_name: str
    role: Role
    since: datetime
    """When the user became a member."""
    disabled: bool
    """Whether the user is disabled and can do nothing."""
    service_account: bool
    """Whether it is a service account of the project, not a person."""
