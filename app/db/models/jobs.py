"""Jobs, the runs they work on, their attempts, and the runs that each attempt carries."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created
from palestra.contract.names import PriorityClass, Schedule
from palestra.contract.states import AttemptState, Cause, JobState, Outcome, ResumeQuality


class JobRow(Base):
    """One queued piece of work on a run or on a pack.

    Only `app.services.jobs.job_state` writes `state`.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "experiment_id"],
            ["experiments.project_id", "experiments.id"],
            ondelete="CASCADE",
        ),
        Index(None, "project_id", "created_at", "id"),
        Index(None, "project_id", "experiment_id"),
        Index(None, "created_by", "created_at", "id"),
        Index(None, "state", "pool"),
        Index(
            "ix_jobs_assigned_worker_id",
            "assigned_worker_id",
            sqlite_where=text("assigned_worker_id IS NOT NULL"),
            postgresql_where=text("assigned_worker_id IS NOT NULL"),
        ),
        Index(
            "ix_jobs_charged",
            "pool",
            sqlite_where=text("charged_weight IS NOT NULL"),
            postgresql_where=text("charged_weight IS NOT NULL"),
        ),
        Index(
            "ix_jobs_finished",
            "experiment_id",
            "finished_at",
            sqlite_where=text("finished_at IS NOT NULL"),
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
        Index(
            "ix_jobs_start_order",
            "pool",
            "priority_class",
            "project_id",
            "created_by",
            text("priority DESC"),
            "own_place",
            "seed_index",
            "queued_at",
            "id",
            sqlite_where=text("state = 'queued' AND open_dependencies = 0"),
            postgresql_where=text("state = 'queued' AND open_dependencies = 0"),
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(64))
    experiment_id: Mapped[str] = mapped_column(String(64))
    schedule: Mapped[Schedule]
    state: Mapped[JobState]
    cause: Mapped[Cause | None]
    failure: Mapped[dict[str, Any] | None]

    pool: Mapped[str] = mapped_column(String(64))
    priority_class: Mapped[PriorityClass] = mapped_column(
        default=PriorityClass.NORMAL, server_default=PriorityClass.NORMAL
    )
    priority: Mapped[int]
    """Order among the person's own jobs."""
    own_place: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Order among the person's own jobs of the same priority, the lowest first: 0 unless a job was
    moved by hand."""
    seed_index: Mapped[int] = mapped_column(default=0, server_default="0")
    """Place of its first run among the runs of its experiment; 0 of jobs that do not train."""
    gpus: Mapped[int]
    """Number of GPUs in `resources`, as a column for SQL."""
    resources: Mapped[dict[str, Any]]
    limits: Mapped[dict[str, Any]]
    evaluate: Mapped[dict[str, Any] | None]
    """Options of the schedules that read a snapshot, with `snapshot` resolved to an id."""
    work_order_version: Mapped[int]
    afresh: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its first attempt starts from the beginning even if the run has snapshots."""
    allow_code_change: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its attempts may run other code than that of the experiment."""

    attempt: Mapped[int] = mapped_column(default=0)
    """Number of the latest attempt; the next attempt gets the next number."""
    infrastructure_failures: Mapped[int] = mapped_column(default=0)
    failed_starts: Mapped[int] = mapped_column(default=0, server_default="0")
    """Attempts whose worker could not start the trainer; not among `infrastructure_failures`."""
    counted_failures: Mapped[int] = mapped_column(default=0)
    """Failures in a row that are retried once: host out of memory, stalled."""
    quick_deaths: Mapped[int] = mapped_column(default=0)
    """Consecutive deaths of a trainer within a minute; the third fails the job as `poison`."""

    open_dependencies: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of jobs that have to end before it may start."""
    not_before: Mapped[datetime | None]
    """A queued job is not dispatched before this time."""
    assigned_worker_id: Mapped[str | None] = mapped_column(String(64))
    """The worker that was asked to start it, while it is queued."""
    assigned_until: Mapped[datetime | None]
    """When the assignment expires unless the worker claims the job."""
    assigned_slots: Mapped[int] = mapped_column(default=1, server_default="1")
    """Slots that the worker was asked to take for it; of no meaning without an assignment."""
    charged_weight: Mapped[float | None]
    """`app.domain.queue.usage.weight` of the time from which its usage counts; NULL unless it is
    assigned or live."""

    created_by: Mapped[str] = mapped_column(String(64), ForeignKey("users.id"))
    created_at: Mapped[Created]
    queued_at: Mapped[Created]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobDependencyRow(Base):
    """The dependency of a job on the end of another one; neither is ever changed."""

    __tablename__ = "job_dependencies"
    __table_args__ = (Index(None, "after_id"),)

    job_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    after_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    condition: Mapped[str] = mapped_column(String(16))
    """`success` or `any`."""
    is_open: Mapped[bool]
    """Whether the other job has not ended."""


class JobRunRow(Base):
    """Association of a job with a run that it works on."""

    __tablename__ = "job_runs"
    __table_args__ = (Index(None, "run_id"),)

    job_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int]
    outcome: Mapped[Outcome | None]
    """Of a pack: how the run ended for good while the job may continue with other runs.

    Later attempts do not carry such a run.
    """
    cause: Mapped[Cause | None]
    failure: Mapped[dict[str, Any] | None]
    ended_at: Mapped[datetime | None]


class AttemptRow(Base):
    """One try at executing a job, on one worker, under one lease."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        Index(None, "project_id"),
        Index(
            "uq_attempts_live_job",
            "job_id",
            unique=True,
            sqlite_where=text("state IN ('starting', 'running')"),
            postgresql_where=text("state IN ('starting', 'running')"),
        ),
        Index(
            "uq_attempts_live_slot",
            "worker_id",
            "slot",
            unique=True,
            sqlite_where=text("state IN ('starting', 'running')"),
            postgresql_where=text("state IN ('starting', 'running')"),
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    job_id: Mapped[str] = mapped_column(String(64), ForeignKey("jobs.id", ondelete="CASCADE"))
    number: Mapped[int]
    worker_id: Mapped[str] = mapped_column(String(64), ForeignKey("workers.id"))
    slot: Mapped[int]
    further_slots: Mapped[list[Any] | None]
    """The other slots of an attempt that has several, in ascending order. That no two live attempts
    share a slot is checked by the claim, the index covers only `slot`."""
    slot_count: Mapped[int] = mapped_column(default=1, server_default="1")
    """Number of its slots, as a column for SQL."""
    boot_id: Mapped[str] = mapped_column(String(64))
    """The worker's boot ID at the claim: another one later proves that the attempt has ended."""
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the attempt's token."""

    state: Mapped[AttemptState]
    outcome: Mapped[Outcome | None]
    cause: Mapped[Cause | None]
    failure: Mapped[dict[str, Any] | None]
    resume_quality: Mapped[ResumeQuality | None]
    provenance: Mapped[dict[str, Any] | None]
    """The code, packages and hardware that the attempt used, from its report."""
    ran_with: Mapped[dict[str, Any]]
    """Code, and the worker's version, packages and hardware, at the time of the claim."""

    lease_until: Mapped[datetime]
    acked_seq: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of the attempt's last committed record; written by the ingest alone."""
    spooled_seq: Mapped[int] = mapped_column(BigInteger, default=0)
    env_step: Mapped[int] = mapped_column(BigInteger, default=0)
    update: Mapped[int] = mapped_column("update_count", BigInteger, default=0)
    trainer_pid: Mapped[int | None] = mapped_column(BigInteger)
    phase: Mapped[str | None] = mapped_column(String(16))
    """A `TrainerPhase`; `None` while the trainer trains."""
    compile: Mapped[str | None] = mapped_column(String(16))
    """A `CompileMode`: how updates run, which later attempts of the runs keep."""
    backlog: Mapped[dict[str, Any] | None]
    """The results that were not uploaded at the latest renewal, a `Backlog`."""
    gives_up: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether a user discarded the results that are not uploaded."""
    started_at: Mapped[Created]
    renewed_at: Mapped[Created]
    ended_at: Mapped[datetime | None]


class AttemptRunRow(Base):
    """A run that an attempt carries, with the attempt's fence of that run."""

    __tablename__ = "attempt_runs"
    __table_args__ = (
        Index(
            "uq_attempt_runs_live_training",
            "run_id",
            unique=True,
            sqlite_where=text("live_training"),
            postgresql_where=text("live_training"),
        ),
        Index(None, "run_id", "fence"),
    )

    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True
    )
    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    fence: Mapped[int] = mapped_column(BigInteger)
    training: Mapped[bool]
    """Whether the attempt writes training state; its claim then raised `fence`."""
    live_training: Mapped[bool]
    """Whether `training` and the attempt has not ended: true in at most one row per run."""
    snapshot_id: Mapped[str | None] = mapped_column(String(64))
    """Snapshot that a training resumed from, or that another schedule reads."""
