"""Workers and what they offer."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class WorkerRow(Base):
    """The worker of a machine, which owns slots.

    The worker keeps its ID when it registers again under its name.
    """

    __tablename__ = "workers"
    __table_args__ = (
        Index(
            None,
            "name",
            unique=True,
            postgresql_where=text("replaced_at IS NULL"),
            sqlite_where=text("replaced_at IS NULL"),
        ),
        Index(None, "pool"),
        Index(None, "secret_hash", unique=True),
        Index(None, "next_secret_hash", unique=True),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    former_name: Mapped[str | None] = mapped_column(String(64))
    """Its name before names were unique in the server, with which it may still register."""
    pool: Mapped[str] = mapped_column(String(64))
    """Name of its pool; empty once that was deleted or the worker was replaced."""
    queue: Mapped[str] = mapped_column(String(160), default="", server_default="")
    """The Celery queue that it was told to listen to at its latest registration."""
    broker_password_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the password of its user of the broker, whose name is its ID.

    `None` if it has no user of its own, and once it was forgotten.
    """
    host: Mapped[str] = mapped_column(String(64))
    boot_id: Mapped[str] = mapped_column(String(64))
    pid: Mapped[int] = mapped_column(BigInteger)
    slots: Mapped[int]
    takes_several_slots: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it can start an attempt on several slots."""
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
    secret_since: Mapped[datetime | None]
    """When the worker first used its present secret after a rotation; `None` before the first."""
    next_secret_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the secret that replaces the present one once the worker uses it."""
    rotation_nonce: Mapped[str | None] = mapped_column(String(64))
    """Random number from which the next secret is derived; set while a rotation is pending."""
    contract_version: Mapped[int] = mapped_column(default=1, server_default="1")
    """Version of the answers that the worker knows, as of its latest registration."""
    silent_seconds: Mapped[float]
    """Silence after which it is shown as unreachable and gets no jobs, as agreed at registration.
    """
    draining: Mapped[bool] = mapped_column(default=False)
    failed_starts: Mapped[int] = mapped_column(default=0, server_default="0")
    """Attempts in a row whose trainer it could not start; too many make it drain."""
    drain_reason: Mapped[str | None] = mapped_column(Text)
    """Why it drains without a request by a user."""
    created_by: Mapped[str | None] = mapped_column(String(64))
    """ID of the user who made the token that enrolled it. Information only: that user may be gone.
    """
    registered_at: Mapped[Created]
    replaced_at: Mapped[datetime | None]
    """When another worker enrolled under its name, after it was forgotten.

    It is not listed any more; its attempts remain.
    """
    last_heartbeat_at: Mapped[Created]
    clock_skew_seconds: Mapped[float | None]
    """Seconds by which its clock was ahead of the database's at the latest heartbeat."""
