"""Curves: series of runs, their points, the batches that carried them, and epoch statistics."""

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, Created
from app.db.record_text import RecordText
from palestra.contract.names import EvaluationSource


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


class TailRow(Base):
    """Points of one run that came with one batch and are not in blocks yet.

    The compactor deletes the row in the transaction that adds the blocks.
    """

    __tablename__ = "curve_tails"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(String(64))
    fence: Mapped[int] = mapped_column(BigInteger)
    first_seq: Mapped[int] = mapped_column(BigInteger)
    """Number of the batch's first new record, which identifies the batch."""
    last_seq: Mapped[int] = mapped_column(BigInteger)
    points: Mapped[int]
    received_at: Mapped[Created]
    content: Mapped[bytes] = mapped_column(LargeBinary)
    """See `app.metrics.point_tables`."""


class BlockRow(Base):
    """Consecutive points of one series from one attempt (`app.metrics.blocks`).

    Blocks never change; the compactor replaces several by one. Blocks of a series follow each other
    in the order (fence, attempt_id, first_seq).
    """

    __tablename__ = "curve_blocks"
    __table_args__ = (
        Index(
            "uq_curve_blocks_order", "series_id", "fence", "attempt_id", "first_seq", unique=True
        ),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    series_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("series.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(String(64))
    fence: Mapped[int] = mapped_column(BigInteger)
    first_seq: Mapped[int] = mapped_column(BigInteger)
    """Number of the attempt's record that holds the block's first point."""
    last_seq: Mapped[int] = mapped_column(BigInteger)
    points: Mapped[int]
    env_step_low: Mapped[int] = mapped_column(BigInteger)
    env_step_high: Mapped[int] = mapped_column(BigInteger)
    update_low: Mapped[int] = mapped_column(BigInteger)
    update_high: Mapped[int] = mapped_column(BigInteger)
    episode_low: Mapped[int] = mapped_column(BigInteger)
    episode_high: Mapped[int] = mapped_column(BigInteger)
    wall_low: Mapped[int] = mapped_column(BigInteger)
    """Milliseconds since the Unix epoch."""
    wall_high: Mapped[int] = mapped_column(BigInteger)
    levels: Mapped[int] = mapped_column(BigInteger)
    """Lowest and highest level of the rollups on each axis (`app.metrics.pyramid.pack_levels`).

    0 for a block without rollups.
    """
    content: Mapped[bytes] = mapped_column(LargeBinary)


class RollupRow(Base):
    """Aggregates of a block over cells of one level on one axis (`app.metrics.pyramid`)."""

    __tablename__ = "curve_rollups"
    __table_args__ = ({"sqlite_with_rowid": False},)

    series_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("series.id", ondelete="CASCADE"), primary_key=True
    )
    axis: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """Place of the axis in `app.metrics.pyramid.AXES`."""
    level: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    block_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    cells: Mapped[bytes] = mapped_column(LargeBinary)


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
    digests: Mapped[bytes] = mapped_column(LargeBinary)
    """16 bytes per record."""
    received_at: Mapped[Created]


class EpochStatsRow(Base):
    """The `ExperimentStats` of a run after an epoch that is not in a block yet."""

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


class EpochBlockRow(Base):
    """The `ExperimentStats` of consecutive epochs of a run (`app.metrics.epoch_blocks`).

    Blocks of a run follow each other in the order (fence, first_seq), and the epochs of an attempt
    that are rows follow its blocks. Blocks never change; the compactor replaces the last one.
    """

    __tablename__ = "epoch_blocks"
    __table_args__ = (Index("uq_epoch_blocks_order", "run_id", "fence", "first_seq", unique=True),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(String(64))
    fence: Mapped[int] = mapped_column(BigInteger)
    first_seq: Mapped[int] = mapped_column(BigInteger)
    """Number of the attempt's record of the first epoch."""
    last_seq: Mapped[int] = mapped_column(BigInteger)
    epochs: Mapped[int]
    text_bytes: Mapped[int]
    """Bytes of the records before they were compressed."""
    content: Mapped[bytes] = mapped_column(LargeBinary)


class EvaluationRow(Base):
    """One evaluation of a run."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("attempt_id", "seq"),
        Index(None, "run_id", "fence", "seq"),
        # Only evaluations of snapshots are looked for by these; most are made during training.
        *(
            Index(
                None,
                name,
                sqlite_where=text("snapshot_id IS NOT NULL"),
                postgresql_where=text("snapshot_id IS NOT NULL"),
            )
            for name in ("snapshot_id", "job_id")
        ),
        *(
            Index(
                f"ix_evaluations_{name}",
                "run_id",
                *columns,
                sqlite_where=text("superseded = 0 AND source = 'evaluation'"),
                postgresql_where=text("NOT superseded AND source = 'evaluation'"),
            )
            for name, columns in (
                ("latest", ("env_step", "update_count", "id")),
                ("best", ("score",)),
            )
        ),
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
    source: Mapped[EvaluationSource] = mapped_column(
        default=EvaluationSource.EVALUATION, server_default=EvaluationSource.EVALUATION
    )
    """Kind of the episodes."""
    superseded: Mapped[bool] = mapped_column(default=False)
    body: Mapped[str] = mapped_column(RecordText)
    """The record as JSON text, exact to the last bit."""
    created_at: Mapped[Created]
