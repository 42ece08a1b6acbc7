"""Invitations of new users."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, false
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class InvitationRow(Base):
    """A one-time link with which a person becomes a user.

    The row has no foreign keys, so that it is kept when the administrator who made the invitation
    or a named project is deleted.
    """

    __tablename__ = "invitations"
    __table_args__ = (Index(None, "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    code_hash: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str | None] = mapped_column(String(64))
    """Login name that is proposed."""
    display_name: Mapped[str] = mapped_column(String(64), default="", server_default="")
    email: Mapped[str | None] = mapped_column(String(254))
    is_admin: Mapped[bool] = mapped_column(default=False, server_default=false())
    memberships: Mapped[list[Any]]
    """Objects with `project_id` and `role`."""
    created_by: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[Created]
    expires_at: Mapped[datetime]
    redeemed_at: Mapped[datetime | None]
    redeemed_by: Mapped[str | None] = mapped_column(String(64))
    revoked_at: Mapped[datetime | None]
