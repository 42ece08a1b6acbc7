"""Workers and what they offer."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class WorkerRow(Base):
    """A machine's agent, which owns slots.

    It keeps its ID when it registers again under its name.
    """

    __tablename__ = "workers"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        Index(None, "project_id", "pool"),
        Index(None, "secret_hash", unique=True),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    name: Mapped[str] = mapped_column(String(64))
    pool: Mapped[str] = mapped_column(String(64))
    host: Mapped[str] = mapped_column(String(64))
    boot_id: Mapped[str] = mapped_column(String(64))
    pid: Mapped[int] = mapped_column(BigInteger)
    slots: Mapped[int]
    gpus: Mapped[list[Any]]
    gpu_count: Mapped[int]
    """Length of `gpus`, as a column for SQL."""
    work_order_versions: Mapped[list[Any]]
    version: Mapped[str] = mapped_column(String(64))
    hardware: Mapped[dict[str, Any]]
    packages: Mapped[dict[str, Any]]
    catalogue: Mapped[dict[str, Any]]
    secret_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the worker's own secret; `None` permits another enrolment under the name."""
    silent_seconds: Mapped[float]
    """Silence after which it is shown as unreachable and gets no jobs, as agreed at registration.
    """
    draining: Mapped[bool] = mapped_column(default=False)
    created_by: Mapped[str] = mapped_column(String(64), ForeignKey("users.id"))
    registered_at: Mapped[Created]
    last_heartbeat_at: Mapped[Created]
