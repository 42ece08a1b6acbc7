"""Experiments, their runs, and how they were submitted."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey, Created
from palestra.contract.states import Cause, ResumeQuality, RunState


class ExperimentRow(Base):
    """One definition with its generated, reproducible ID, which is unique within a project."""

    __tablename__ = "experiments"
    __table_args__ = (
        UniqueConstraint("project_id", "identity_hash"),
        Index(None, "project_id", "created_at", "id"),
        Index(None, "project_id", "name", "id"),
        Index(None, "created_by", "created_at", "id"),
        Index(None, "definition_hash"),
        Index(None, "env", "agent"),
    )

    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    identity_hash: Mapped[str] = mapped_column(String(64))
    """SHA-256 over definition, schema version and code."""
    definition_hash: Mapped[str] = mapped_column(String(64))
    schema_version: Mapped[int]
    definition: Mapped[str] = mapped_column(Text)
    """Canonical JSON, read with `palestra.contract.upgrade.load_definition`."""
    code: Mapped[dict[str, Any]]
    name: Mapped[str] = mapped_column(String(64))
    notes: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(32))
    agent: Mapped[str] = mapped_column(String(64))
    env: Mapped[str] = mapped_column(String(128))
    created_by: Mapped[str] = mapped_column(String(64), ForeignKey("users.id"))
    created_at: Mapped[Created]
    archived_at: Mapped[datetime | None]
    max_running: Mapped[int | None]
    """Most of its jobs that run at the same time; `None` for no limit."""


class SubmissionRow(Base):
    """The provenance recorded at a submission; the runs that it created refer to it."""

    __tablename__ = "submissions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            ondelete="CASCADE",
        ),
        Index(None, "project_id", "experiment_id"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    provenance: Mapped[dict[str, Any]]
    created_by: Mapped[str] = mapped_column(String(64), ForeignKey("users.id"))
    created_at: Mapped[Created]


class RunRow(Base):
    """One training history of one definition with one seed.

    `state`, `cause`, `failure`, `job_id`, `started_at` and `finished_at` are derived from its
    training jobs (`app.domain.derived_states.run_state`); only `app.services.jobs.job_state` writes
    them, in the transaction of the job's change. The ingest raises the progress columns.
    """

    __tablename__ = "runs"
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("project_id", "experiment_id", "seed", "replicate"),
        Index(None, "submission_id"),
        Index(None, "project_id", "created_at", "id"),
        Index(None, "created_by", "created_at", "id"),
        Index(
            "ix_runs_filters",
            "project_id",
            "state",
            "experiment_id",
            "seed",
            "created_by",
            "created_at",
            "id",
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    seed: Mapped[int] = mapped_column(BigInteger)
    replicate: Mapped[int] = mapped_column(default=0)
    submission_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("submissions.id"))
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    """Raised by each claim that will write training state; lower values may no longer write."""

    state: Mapped[RunState] = mapped_column(default=RunState.QUEUED)
    cause: Mapped[Cause | None]
    failure: Mapped[dict[str, Any] | None]
    job_id: Mapped[str | None] = mapped_column(String(64))
    """Latest training job."""
    resume_quality: Mapped[ResumeQuality | None]
    env_step: Mapped[int] = mapped_column(BigInteger, default=0)
    update: Mapped[int] = mapped_column("update_count", BigInteger, default=0)
    episode: Mapped[int] = mapped_column(BigInteger, default=0)
    env_steps_per_second: Mapped[float | None]
    created_by: Mapped[str] = mapped_column(String(64), ForeignKey("users.id"))
    created_at: Mapped[Created]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
