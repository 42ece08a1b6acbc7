"""All tables. Importing this module fills `Base.metadata`."""

from app.db.models.base import Base
from app.db.models.experiments import Experiment, Run, Submission
from app.db.models.jobs import Attempt, AttemptRun, Job, JobRun
from app.db.models.projects import Audit, Membership, Project, User
from app.db.models.workers import Worker

__all__ = [
    "Attempt",
    "AttemptRun",
    "Audit",
    "Base",
    "Experiment",
    "Job",
    "JobRun",
    "Membership",
    "Project",
    "Run",
    "Submission",
    "User",
    "Worker",
]
