"""All tables. Importing this module fills `Base.metadata`."""

from app.db.models.access import IdempotencyKey, LoginLink, LoginSession, Token
from app.db.models.artifacts import Artifact, Blob
from app.db.models.base import Base
from app.db.models.curves import Block, EpochStats, Evaluation, Series, TelemetryBatch
from app.db.models.events import Event
from app.db.models.experiments import Experiment, Run, Submission
from app.db.models.jobs import Attempt, AttemptRun, Job, JobRun
from app.db.models.logs import LogBlock
from app.db.models.projects import Audit, Membership, Project, User
from app.db.models.snapshots import Snapshot, SnapshotFile
from app.db.models.uptime import ServerUptime
from app.db.models.workers import Worker

__all__ = [
    "Artifact",
    "Attempt",
    "AttemptRun",
    "Audit",
    "Base",
    "Blob",
    "Block",
    "EpochStats",
    "Evaluation",
    "Event",
    "Experiment",
    "IdempotencyKey",
    "Job",
    "JobRun",
    "LogBlock",
    "LoginLink",
    "LoginSession",
    "Membership",
    "Project",
    "Run",
    "Series",
    "ServerUptime",
    "Snapshot",
    "SnapshotFile",
    "Submission",
    "TelemetryBatch",
    "Token",
    "User",
    "Worker",
]
