"""Service accounts as they cross the API: users of one project for programs."""

from datetime import datetime

from palestra.contract.documents import Document
from palestra.contract.names import Slug
from palestra.contract.permissions import Role
from palestra.contract.views import View


class ServiceAccountRequest(Document):
    """A new service account: a user of one project for programs, which cannot log in."""

    name: Slug
    """Login name, unlike those of all users."""
    role: Role = Role.MEMBER
    """`viewer` or `member`."""


class ServiceAccountView(View):
    """A service account of a project."""

    user_id: str
    name: str
    role: Role
    created_at: datetime
    tokens: int
    """Tokens that are neither revoked nor expired."""
    last_used_at: datetime | None
    """When one of its tokens was last used."""
