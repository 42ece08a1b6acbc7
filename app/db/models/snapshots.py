"""Snapshots of runs and their files."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created
from palestra.contract.states import SnapshotReason, SnapshotState


class SnapshotRow(Base):
    """Everything needed to resume a run.

    The row is kept when its files are deleted, since the fence chain refers to it.
    """

    __tablename__ = "snapshots"
    __table_args__ = (Index(None, "run_id", "fence", "seq"), Index(None, "attempt_id"))

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE")
    )
    fence: Mapped[int] = mapped_column(BigInteger)
    seq: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[SnapshotState]
    reason: Mapped[SnapshotReason]
    env_step: Mapped[int] = mapped_column(BigInteger)
    update: Mapped[int] = mapped_column("update_count", BigInteger)
    episode: Mapped[int] = mapped_column(BigInteger)
    format_version: Mapped[int]
    resume_exact: Mapped[bool]
    score: Mapped[float | None]
    """Mean return of the latest evaluation at this state, for ordering.

    NULL where it is not finite.
    """
    score_text: Mapped[str | None] = mapped_column(String(32))
    """The same value as JSON text."""
    superseded: Mapped[bool] = mapped_column(default=False)
    pinned: Mapped[bool] = mapped_column(default=False)
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[Created]
    verified_at: Mapped[datetime | None]


class SnapshotFileRow(Base):
    """A file of a snapshot; `artifact_id` is set once its content is stored."""

    __tablename__ = "snapshot_files"

    snapshot_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("snapshots.id", ondelete="CASCADE"), primary_key=True
    )
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    artifact_id: Mapped[str | None] = mapped_column(String(64))
