"""Projects, users and memberships."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created
from palestra.contract.permissions import Role


class ProjectRow(Base):
    """The owner of experiments."""

    __tablename__ = "projects"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    slug: Mapped[str] = mapped_column(String(64), unique=True)
    """Its name in addresses: lower-case ASCII letters, digits and hyphens."""
    name: Mapped[str] = mapped_column(String(64), unique=True)
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[Created]
    archived_at: Mapped[datetime | None]
    """While set, nothing can be submitted to it."""
    deleted_at: Mapped[datetime | None]
    """While set, it is hidden; its content is removed after `restorable_until`."""
    deleted_by: Mapped[str | None] = mapped_column(String(64))
    """ID of the user who deleted it."""
    restorable_until: Mapped[datetime | None]
    removal_started_at: Mapped[datetime | None]
    """Since when its content is being removed: it cannot be restored any more."""
    storage_used: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Bytes of its blobs; kept with every blob that is added, moved or dropped."""
    storage_limit: Mapped[int | None] = mapped_column(BigInteger)
    """Bytes of stored files from which on nothing can be submitted."""


class UserRow(Base):
    """A user, who may be a member of several projects: a person or a service account."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    """The login name: lower-case ASCII letters, digits and hyphens."""
    display_name: Mapped[str] = mapped_column(String(64), default="", server_default="")
    """Shown instead of the login name, if not empty."""
    email: Mapped[str | None] = mapped_column(String(254))
    is_admin: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the user administers the server: users, projects and pools."""
    service_project_id: Mapped[str | None] = mapped_column(String(64), index=True)
    """The project of a service account, which cannot log in; `None` for a person."""
    made_by: Mapped[str | None] = mapped_column(String(64))
    """ID of the user who made a service account, which counts as that person in limits.

    `None` for a person, and for service accounts of earlier versions.
    """
    password_hash: Mapped[str | None] = mapped_column(String(256))
    """argon2id; NULL while the user logs in by link only."""
    created_at: Mapped[Created]
    disabled_at: Mapped[datetime | None]


class MembershipRow(Base):
    """A user's role in a project: `viewer`, `member` or `maintainer`."""

    __tablename__ = "memberships"

    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    role: Mapped[Role]
    created_at: Mapped[Created]
