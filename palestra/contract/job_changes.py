"""Changes of a waiting job (class, priority, limits, own order) and of an experiment's limit."""

from palestra.contract.documents import Document, Patch
from palestra.contract.job_options import (
    GraceSeconds,
    MaxAttempts,
    MaxRunning,
    Priority,
    StallSeconds,
    WallSeconds,
)
from palestra.contract.names import PriorityClass


class LimitsChange(Patch):
    """A change of the limits of a job; members that are left out stay as they are."""

    wall_seconds: WallSeconds | None = None
    """`null` takes the default of the pool."""
    stall_seconds: StallSeconds | None = None
    grace_seconds: GraceSeconds | None = None
    max_attempts: MaxAttempts | None = None


class JobChange(Patch):
    """A change of a job that waits; members that are left out stay as they are."""

    priority_class: PriorityClass | None = None
    priority: Priority | None = None
    limits: LimitsChange | None = None


class JobReorder(Document):
    """A new place of a waiting job among the person's own jobs."""

    before: str | None
    """ID of the waiting job directly before which it is to start; `null`: after all of the person's
    other jobs in the same pool, project and class."""


class ExperimentChange(Patch):
    """A change of an experiment; members that are left out stay as they are."""

    max_running: MaxRunning | None = None
    """Most of its jobs that run at the same time; `null` removes the limit. Running jobs go on."""
