"""Saved views of pages of the dashboard."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.clock import Timestamp, db_now
from app.db.models.base import Base, Created
from palestra.contract.saved_views import ViewVisibility


class SavedViewRow(Base):
    """What a page shows under a name, for its owner or for all members of the project."""

    __tablename__ = "views"
    __table_args__ = (
        UniqueConstraint("project_id", "owner_id", "name"),
        Index(None, "owner_id"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    owner_id: Mapped[str] = mapped_column(String(64), ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(64))
    visibility: Mapped[ViewVisibility]
    state: Mapped[dict[str, Any]]
    """A `palestra.contract.saved_views.RunsPageState`."""
    created_at: Mapped[Created]
    updated_at: Mapped[datetime] = mapped_column(Timestamp, default=db_now())
