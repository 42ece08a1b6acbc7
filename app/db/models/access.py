"""Credentials, stored as hashes, and the answers of requests with an `Idempotency-Key`."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class TokenRow(Base):
    """An API token of a user: scopes within one project, or within all projects of its user."""

    __tablename__ = "tokens"
    __table_args__ = (
        Index(None, "project_id", "created_at", "id"),
        Index(None, "user_id", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str | None] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    """`None`: all projects of its user."""
    user_id: Mapped[str] = mapped_column(String(64), ForeignKey("users.id", ondelete="CASCADE"))
    """The user to whom its changes are attributed."""
    parent_id: Mapped[str | None] = mapped_column(String(64), index=True)
    """The token that created it; `None` for one that a login or the console created."""
    name: Mapped[str] = mapped_column(String(64))
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    previous_hash: Mapped[str | None] = mapped_column(String(64), index=True)
    """The secret of before the latest rotation, valid until `previous_until`."""
    previous_until: Mapped[datetime | None]
    scopes: Mapped[list[Any]]
    created_at: Mapped[Created]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    revoked_at: Mapped[datetime | None]


class LoginSessionRow(Base):
    """A browser's login."""

    __tablename__ = "login_sessions"
    __table_args__ = (Index(None, "user_id", "ended_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64), ForeignKey("users.id", ondelete="CASCADE"))
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[Created]
    last_used_at: Mapped[Created]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    browser: Mapped[str | None] = mapped_column(String(64))
    """Browser and operating system in words (`app.domain.browsers`)."""
    opened_by: Mapped[str | None] = mapped_column(String(16))
    """`password`, `link` or `invitation`; `None` for a login of an older version."""
    ended_at: Mapped[datetime | None]


class LoginLinkRow(Base):
    """A setup or login link, valid once and for a short time."""

    __tablename__ = "login_links"

    code_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64), ForeignKey("users.id", ondelete="CASCADE"))
    created_at: Mapped[Created]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class IdempotencyKeyRow(Base):
    """The answer to a request with an `Idempotency-Key`, written with the change itself."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    location: Mapped[str | None] = mapped_column(String(512))
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[Created]
