"""The lease of the dispatcher."""

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base


class DispatcherLeaseRow(Base):
    """The right to assign jobs, which one of several dispatchers holds at a time."""

    __tablename__ = "dispatcher_lease"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    epoch: Mapped[int]
    """Raised by each taking; a dispatcher with an older epoch writes nothing."""
    holder: Mapped[str] = mapped_column(String(160))
    """Host and process ID of the latest holder."""
    taken_at: Mapped[datetime]
    held_until: Mapped[datetime]
    """Time from which another dispatcher may take the lease."""
