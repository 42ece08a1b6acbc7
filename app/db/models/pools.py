"""Pools of workers, the projects that may use them, and their enrolment tokens."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created
from palestra.contract.pool_windows import WindowKind


class PoolRow(Base):
    """A set of workers with one queue. Jobs and workers name it; its name never changes."""

    __tablename__ = "pools"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    paused_at: Mapped[datetime | None]
    """While set, no job of the pool starts."""
    pause_reason: Mapped[str] = mapped_column(Text, default="", server_default="")
    default_wall_seconds: Mapped[int | None]
    """Wall time of an attempt of a job that names none."""
    max_wall_seconds: Mapped[int | None]
    """Longest wall time that a job may ask for."""
    shows_names: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether a project sees the user and the project of other projects' jobs in the slots."""
    created_at: Mapped[Created]


class ProjectPoolRow(Base):
    """The admission of a project to a pool."""

    __tablename__ = "project_pools"
    __table_args__ = (Index(None, "pool_id"),)

    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    pool_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("pools.id", ondelete="CASCADE"), primary_key=True
    )
    share: Mapped[float] = mapped_column(default=1.0, server_default="1")
    """Weight of the project, larger than 0: its part of the pool while all projects have work."""
    created_at: Mapped[Created]


class QuotaRow(Base):
    """Limits of a project in a pool, of each of its persons, or of one of them."""

    __tablename__ = "quotas"

    pool_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("pools.id", ondelete="CASCADE"), primary_key=True
    )
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    subject: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Empty for the project, `*` for each of its persons, else the ID of a user, whose limits
    replace those of each person."""
    queued: Mapped[int | None]
    running: Mapped[int | None]
    device_hours: Mapped[float | None]


class PoolWindowRow(Base):
    """A time in which workers of a pool start nothing, or only jobs of a project or a person."""

    __tablename__ = "pool_windows"
    __table_args__ = (Index(None, "pool_id", "ends_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    pool_id: Mapped[str] = mapped_column(String(64), ForeignKey("pools.id", ondelete="CASCADE"))
    kind: Mapped[WindowKind]
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    workers: Mapped[list[Any]]
    """IDs of its workers; empty for all workers of the pool."""
    project_id: Mapped[str | None] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    """Project that a reservation is for."""
    user_id: Mapped[str | None] = mapped_column(
        String(64), ForeignKey("users.id", ondelete="CASCADE")
    )
    """Person that a reservation is for."""
    reason: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_by: Mapped[str] = mapped_column(String(64))
    """ID of the user who planned it. Information only: that user may be gone."""
    created_at: Mapped[Created]


class EnrolmentTokenRow(Base):
    """A token with which workers enrol in one pool; a token of the pool, not of a user."""

    __tablename__ = "enrolment_tokens"
    __table_args__ = (Index(None, "pool_id", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    pool_id: Mapped[str] = mapped_column(String(64), ForeignKey("pools.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(64))
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_by: Mapped[str | None] = mapped_column(String(64))
    """ID of the user who made it. Information only: that user may be gone."""
    created_at: Mapped[Created]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
