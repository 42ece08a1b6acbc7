"""Projects, users, memberships, and the audit log."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, Created


class ProjectRow(Base):
    """The owner of experiments."""

    __tablename__ = "projects"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[Created]


class UserRow(Base):
    """A user, who may be a member of several projects."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(256))
    """argon2id; NULL while the user logs in by link only."""
    created_at: Mapped[Created]
    disabled_at: Mapped[datetime | None]


class MembershipRow(Base):
    """A user's role in a project: `viewer`, `member` or `admin`."""

    __tablename__ = "memberships"

    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    role: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[Created]


class AuditRow(Base):
    """An entry of the audit log, appended in the transaction of the change and never modified."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "project_id", "object_type", "object_id", "id"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    actor: Mapped[str] = mapped_column(String(96))
    """`user:usr_...`, `token:tok_...`, `attempt:att_...`, `worker:wrk_...` or `daemon:NAME`."""
    action: Mapped[str] = mapped_column(String(64))
    """For example `job.move`, `experiment.create`, `token.revoke`."""
    object_type: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[str] = mapped_column(String(96))
    data: Mapped[dict[str, Any]]
    """What changed: `from`, `to`, `cause`, `reason`."""
    at: Mapped[Created]
