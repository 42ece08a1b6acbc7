"""States of jobs, attempts, runs, snapshots and workers, and the causes written beside them."""

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    PREEMPTING = "preempting"
    LOST = "lost"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_JOB_STATES: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
LIVE_JOB_STATES: Final = frozenset(
    {
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSING,
        JobState.CANCELLING,
        JobState.PREEMPTING,
    }
)
"""States in which an attempt holds a lease."""


class RunState(StrEnum):
    """State of a run, derived from its training jobs."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_RUN_STATES: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})


class AttemptState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


LIVE_ATTEMPT_STATES: Final = (AttemptState.STARTING, AttemptState.RUNNING)
"""In the order in which the conditions of partial indexes name them."""


class Outcome(StrEnum):
    """The outcome of an attempt."""

    SUCCEEDED = "succeeded"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DRAINED = "drained"
    FAILED = "failed"
    LOST = "lost"


class Cause(StrEnum):
    """The cause of the end of an attempt or a job; the retry rule depends on it."""

    BUDGET = "budget"
    SUCCESS_SCORE = "success_score"
    USER = "user"
    DRAIN = "drain"
    PREEMPTED = "preempted"
    USER_EXCEPTION = "user_exception"
    IMPORT_ERROR = "import_error"
    DIVERGED = "diverged"
    CUDA_OUT_OF_MEMORY = "cuda_out_of_memory"
    HOST_OUT_OF_MEMORY = "host_out_of_memory"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"
    DISK_FULL = "disk_full"
    NO_RESULT = "no_result"
    TRAINER_KILLED = "trainer_killed"
    WORKER_LOST = "worker_lost"
    LEASE_EXPIRED = "lease_expired"
    NOT_STARTED = "not_started"
    """The worker could not start the trainer; the job has no part in it."""
    POISON = "poison"
    STALE = "stale"
    CODE_CHANGED = "code_changed"
    """The worker has other code than the experiment was made with."""
    DEPENDENCY = "dependency"
    """A job that had to succeed before it failed or was cancelled."""


INFRASTRUCTURE_CAUSES: Final = frozenset(
    {Cause.TRAINER_KILLED, Cause.WORKER_LOST, Cause.LEASE_EXPIRED, Cause.NOT_STARTED}
)
"""Causes after which a job is queued again by itself."""


class Order(StrEnum):
    """The pending order for an attempt, in the answer to a renewal of its lease."""

    CONTINUE = "continue"
    PAUSE = "pause"
    CANCEL = "cancel"
    DRAIN = "drain"
    STALE = "stale"


class SnapshotState(StrEnum):
    """State of a snapshot on the server."""

    UPLOADING = "uploading"
    SKIPPED = "skipped"
    """Never stored: newer snapshots were stored first and took its place, or its attempt ended
    before its turn.
    """
    VERIFIED = "verified"
    DELETED = "deleted"


class SnapshotReason(StrEnum):
    """The reason for which a snapshot was written."""

    PERIODIC = "periodic"
    BEST = "best"
    FINISH = "finish"
    STOP = "stop"
    EXCEPTION = "exception"


class ResumeQuality(StrEnum):
    """Whether a training attempt resumed exactly, statistically, or began anew."""

    FRESH = "fresh"
    EXACT = "exact"
    STATISTICAL = "statistical"


class WorkerState(StrEnum):
    """State of a worker, derived from its last heartbeat."""

    ONLINE = "online"
    DRAINING = "draining"
    UNREACHABLE = "unreachable"
    OFFLINE = "offline"
