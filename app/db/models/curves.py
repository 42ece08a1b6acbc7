"""Curves: series of runs, their blocks, the batches that carried them, and statistics of epochs."""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, Created


class SeriesRow(Base):
    """A named curve of a run, with the summary that lists show."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("run_id", "name"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(128))
    points: Mapped[int] = mapped_column(BigInteger)
    nonfinite: Mapped[int] = mapped_column(BigInteger)
    last_env_step: Mapped[int] = mapped_column(BigInteger)
    last_value: Mapped[str] = mapped_column(String(32))
    """JSON text of the latest value, since a column of SQLite cannot hold NaN."""


class BlockRow(Base):
    """Points of one series that came with one batch (`app.metrics.blocks`)."""

    __tablename__ = "series_blocks"
    __table_args__ = (
        UniqueConstraint("series_id", "attempt_id", "first_seq"),
        Index(None, "series_id", "fence", "first_seq"),
        Index(None, "attempt_id", "first_seq"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    series_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("series.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE")
    )
    fence: Mapped[int] = mapped_column(BigInteger)
    first_seq: Mapped[int] = mapped_column(BigInteger)
    """Number of the attempt's record that holds the block's first point."""
    points: Mapped[int]
    content: Mapped[bytes] = mapped_column(LargeBinary)


class TelemetryBatchRow(Base):
    """Committed records of an attempt, with a digest of each.

    The digests distinguish a repetition from a conflict.
    """

    __tablename__ = "telemetry_batches"

    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True
    )
    first_seq: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    last_seq: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of `digests`."""
    digests: Mapped[bytes] = mapped_column(LargeBinary)
    """16 bytes per record."""
    received_at: Mapped[Created]


class EpochStatsRow(Base):
    """The `ExperimentStats` of a run after an epoch."""

    __tablename__ = "epoch_stats"
    __table_args__ = (Index(None, "run_id", "fence", "seq"),)

    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True
    )
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    fence: Mapped[int] = mapped_column(BigInteger)
    body: Mapped[str] = mapped_column(Text)
    """The record as JSON text, exact to the last bit."""


class EvaluationRow(Base):
    """One evaluation of a run."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("attempt_id", "seq"),
        Index(None, "run_id", "fence", "seq"),
        Index(None, "snapshot_id"),
        Index(None, "job_id"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    job_id: Mapped[str] = mapped_column(String(64))
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE")
    )
    snapshot_id: Mapped[str | None] = mapped_column(String(64))
    """Snapshot that was evaluated; NULL during training."""
    fence: Mapped[int] = mapped_column(BigInteger)
    seq: Mapped[int] = mapped_column(BigInteger)
    env_step: Mapped[int] = mapped_column(BigInteger)
    update: Mapped[int] = mapped_column("update_count", BigInteger)
    score: Mapped[float | None]
    """Mean return for ordering; NULL where it is not finite."""
    source: Mapped[str] = mapped_column(
        String(16), default="evaluation", server_default="evaluation"
    )
    """Kind of the episodes: the value of an `EvaluationSource`."""
    superseded: Mapped[bool] = mapped_column(default=False)
    body: Mapped[str] = mapped_column(Text)
    """The record as JSON text, exact to the last bit."""
    created_at: Mapped[Created]
