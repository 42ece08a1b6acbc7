"""What lists sort and filter by: summaries of the series of runs, and members of definitions."""

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, JsonColumn


class SeriesNameRow(Base):
    """The name of a series, of stored ones and of those computed from evaluations."""

    __tablename__ = "series_names"

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(160), unique=True)


class SetupRow(Base):
    """An agent in an environment within a project: what most lists are filtered by.

    Summaries refer to it, so that an index holds the runs of a setup in the order of a statistic.
    """

    __tablename__ = "setups"
    __table_args__ = (UniqueConstraint("project_id", "agent", "env"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    agent: Mapped[str] = mapped_column(String(64))
    env: Mapped[str] = mapped_column(String(128))


class RunSummaryRow(Base):
    """How far the series of a run are summarised."""

    __tablename__ = "run_summaries"
    __table_args__ = (Index(None, "fence", "run_id"),)

    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    fence: Mapped[int] = mapped_column(BigInteger)
    """Fence of the run whose history is summarised; -1 where all must be summarised anew."""
    version: Mapped[int] = mapped_column(BigInteger, default=0)
    """Raised by each change, so that of two daemons one writes."""
    places: Mapped[dict[str, int]] = mapped_column(JsonColumn)
    """Last summarised record by attempt."""
    first_wall: Mapped[float | None]
    """Time of the first point or evaluation, in seconds since the Unix epoch."""
    judged_version: Mapped[int] = mapped_column(BigInteger, default=-1, server_default="-1")
    """Version that the findings are of; -1 before the first judgement."""


class FindingRow(Base):
    """What a health rule finds wrong with the training of a run at present."""

    __tablename__ = "run_findings"

    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    rule: Mapped[str] = mapped_column(String(64), primary_key=True)
    place: Mapped[int] = mapped_column(SmallInteger)
    """Index among the findings of the run, the gravest first."""
    sentence: Mapped[str] = mapped_column(Text)
    remedy: Mapped[str] = mapped_column(Text)
    series: Mapped[str] = mapped_column(String(160))
    env_step: Mapped[int] = mapped_column(BigInteger)


class SeriesSummaryRow(Base):
    """Statistics of a series of a run over the points that count; see `app.metrics.summaries`."""

    __tablename__ = "series_summaries"
    __table_args__ = (
        *(
            Index(f"ix_series_summaries_{statistic}", "name_id", "setup_id", statistic, "run_id")
            for statistic in ("best", "last", "mean10")
        ),
    )

    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    name_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    setup_id: Mapped[int] = mapped_column(BigInteger)
    points: Mapped[int] = mapped_column(BigInteger)
    nonfinite: Mapped[int] = mapped_column(BigInteger)
    last: Mapped[float | None]
    """Last finite value; NULL without one, as `best` and `mean10`."""
    best: Mapped[float | None]
    best_env_step: Mapped[int | None] = mapped_column(BigInteger)
    mean10: Mapped[float | None]
    recent: Mapped[str] = mapped_column(Text)
    """JSON list of the last ten finite values."""


class SummaryProgressRow(Base):
    """The event up to which runs with new points are known; one row."""

    __tablename__ = "summary_progress"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    event_id: Mapped[int] = mapped_column(BigInteger)


class ThresholdRow(Base):
    """A value of a series of which a project wants to know when each run first reaches it."""

    __tablename__ = "thresholds"
    # No ID is used twice: a crossing that is being computed never becomes one of another threshold.
    __table_args__ = (UniqueConstraint("project_id", "name"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    name: Mapped[str] = mapped_column(String(64))
    series: Mapped[str] = mapped_column(String(160))
    value: Mapped[float]
    is_at_least: Mapped[bool]
    """Whether values at or above it reach it; else values at or below it."""


class ThresholdCrossingRow(Base):
    """When a run first reached a threshold."""

    __tablename__ = "threshold_crossings"
    __table_args__ = (
        Index(None, "run_id"),
        *(
            Index(f"ix_threshold_crossings_{column}", "threshold_id", column, "run_id")
            for column in ("env_step", "seconds")
        ),
    )

    threshold_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("thresholds.id", ondelete="CASCADE"), primary_key=True
    )
    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    env_step: Mapped[int] = mapped_column(BigInteger)
    wall: Mapped[float]
    """Seconds since the Unix epoch, by the worker's clock."""
    seconds: Mapped[float]
    """Seconds since the run's first point."""


class DefinitionMemberRow(Base):
    """A member of an experiment's definition by its path, for example `agent.learning_rate`."""

    __tablename__ = "definition_members"
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            ondelete="CASCADE",
        ),
        Index(None, "path", "text"),
        Index(None, "path", "number"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    experiment_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    path: Mapped[str] = mapped_column(String(128), primary_key=True)
    text: Mapped[str] = mapped_column(String(256))
    """The value: a string as it is, others as JSON."""
    number: Mapped[float | None]
    """The value if it is a number."""
