"""Persons with queued jobs in a pool, and what attempts have used.

Without foreign keys: usage outlives the projects, users and jobs that it names.
"""

from datetime import datetime

from sqlalchemy import Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created
from palestra.contract.names import PriorityClass, Schedule


class QueueGroupRow(Base):
    """A person who may have queued jobs in a project, a pool and a priority class.

    Inserted or updated whenever a job is queued; deleted by the dispatcher once it finds no job.
    """

    __tablename__ = "queue_groups"

    pool: Mapped[str] = mapped_column(String(64), primary_key=True)
    priority_class: Mapped[PriorityClass] = mapped_column(primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    waiting_since: Mapped[Created]
    """When it was inserted: since then it has had queued jobs."""
    queued_at: Mapped[Created]
    """When a job of it was queued last."""


class UsageAccountRow(Base):
    """The usage of a person in a project and a pool by attempts that have ended."""

    __tablename__ = "usage_accounts"

    pool: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    weighted_seconds: Mapped[float]
    """Sum of `app.domain.queue.usage.weighted_seconds` of its entries of the kind `used`."""


class UsageEntryRow(Base):
    """An interval in which an attempt held devices. Rows are never updated or deleted."""

    __tablename__ = "usage_entries"
    __table_args__ = (
        UniqueConstraint("attempt_id", "kind"),
        Index(None, "pool", "ended_at"),
        Index(None, "project_id", "ended_at"),
        Index(None, "user_id", "ended_at"),
        Index(None, "ended_at"),
        Index(None, "job_id"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`used`, or `lost`: redone by a later attempt since the infrastructure failed; not charged."""
    pool: Mapped[str] = mapped_column(String(64))
    project_id: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    job_id: Mapped[str] = mapped_column(String(64))
    attempt_id: Mapped[str] = mapped_column(String(64))
    worker_id: Mapped[str] = mapped_column(String(64))
    schedule: Mapped[Schedule]
    priority_class: Mapped[PriorityClass]
    environment: Mapped[str | None] = mapped_column(String(128))
    """ID of the environment that the experiment trains on; `None` of supervised experiments."""
    devices: Mapped[int]
    """Number of GPUs, or 1 for a slot without a GPU."""
    is_gpu: Mapped[bool]
    """Whether the devices are GPUs."""
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime]


class PoolHourRow(Base):
    """Occupancy of the slots of a pool in an hour, summed over regular samples."""

    __tablename__ = "pool_hours"

    pool: Mapped[str] = mapped_column(String(64), primary_key=True)
    hour: Mapped[datetime] = mapped_column(primary_key=True)
    """Start of the hour."""
    sampled_at: Mapped[datetime | None]
    """When it was last added to; NULL of a row that was just inserted."""
    recorded_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """Seconds of which the numbers below are known."""
    slot_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    busy_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """Slots with a live attempt or an assignment."""
    idle_waiting_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """Free slots beside queued jobs that fitted them."""
