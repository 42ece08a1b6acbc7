"""The event log: every change is one appended row, and its id is the cursor of all readers."""

from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, Created


class EventRow(Base):
    """One change of a resource, as the live stream sends it.

    Ids rise in the order in which transactions become visible (`app.db.repositories.events`), so
    none appears behind a cursor.
    """

    __tablename__ = "events"
    __table_args__ = (Index(None, "project_id", "id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str | None] = mapped_column(String(64))
    """NULL for events of pools and of workers, which all who see the pool receive."""
    type: Mapped[str] = mapped_column(String(16))
    experiment_id: Mapped[str | None] = mapped_column(String(64))
    run_id: Mapped[str | None] = mapped_column(String(64))
    job_id: Mapped[str | None] = mapped_column(String(64))
    data: Mapped[dict[str, Any]]
    """The changed resource's view; for `log` the block that holds the content, for `points`
    the batch whose blocks of the run do."""
    at: Mapped[Created]
