"""Estimated times of start, and the actual ones."""

from datetime import datetime

from sqlalchemy import Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class StartEstimateRow(Base):
    """The first and the latest estimate of the start of a job, and the actual start.

    The first estimate was made when the job was last queued, and is compared with the actual start.
    The row has no foreign key: it is kept for a month after the job is deleted.
    """

    __tablename__ = "start_estimates"
    __table_args__ = (
        Index(None, "pool", "started_at"),
        Index(
            "ix_start_estimates_open",
            "pool",
            sqlite_where=text("started_at IS NULL"),
            postgresql_where=text("started_at IS NULL"),
        ),
    )

    job_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    pool: Mapped[str] = mapped_column(String(64))
    made_at: Mapped[Created]
    earliest: Mapped[datetime | None]
    median: Mapped[datetime | None]
    latest: Mapped[datetime | None]
    unknown: Mapped[str | None] = mapped_column(Text)
    """Why there is no latest estimate, in a sentence."""
    first_made_at: Mapped[datetime | None]
    """When the first estimate was made; `None` until one could be made."""
    first_earliest: Mapped[datetime | None]
    first_median: Mapped[datetime | None]
    first_latest: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    """Start of the attempt with which the wait ended; `None` while it waits."""
