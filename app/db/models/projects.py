"""Projects, users and memberships."""

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


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
