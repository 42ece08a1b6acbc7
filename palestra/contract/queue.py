"""Answers about the queue of a pool: why a job waits, what its place depends on, when it starts."""

from datetime import datetime
from enum import StrEnum

from palestra.contract.names import PriorityClass
from palestra.contract.states import JobState
from palestra.contract.views import SubmissionWarning, View


class WaitReason(StrEnum):
    """The reason why a queued job has not started, as a code."""

    PROJECT_NOT_ADMITTED = "project_not_admitted"
    POOL_PAUSED = "pool_paused"
    NO_WORKER_REGISTERED = "no_worker_registered"
    NO_WORKER_ONLINE = "no_worker_online"
    TOO_MANY_GPUS = "too_many_gpus"
    """No worker that is online has as many GPUs."""
    WORK_ORDER_VERSION = "work_order_version"
    """No worker that is online executes the version of its work order."""
    DEPENDENCY = "dependency"
    """Other jobs have to end before it."""
    DELAYED = "delayed"
    """It waits for some time after a failure of the infrastructure."""
    FOLLOWS_TRAINING = "follows_training"
    """A continuous evaluation has nothing to evaluate, and its training does not run."""
    INTERACTIVE_LIMIT = "interactive_limit"
    """Its person has another interactive job."""
    NO_FITTING_WORKER = "no_fitting_worker"
    """No single worker that is online has its GPUs and executes its version."""
    NOT_FREE_LONG_ENOUGH = "not_free_long_enough"
    """A maintenance window or a reservation begins before its time limit on each worker that could
    take it."""
    EXPERIMENT_LIMIT = "experiment_limit"
    """As many jobs of its experiment run as may."""
    PERSON_LIMIT = "person_limit"
    """As many jobs of its person run in its project as may."""
    PROJECT_LIMIT = "project_limit"
    """As many jobs of its project run as may."""
    DEVICE_HOURS = "device_hours"
    """Its person or its project has used its device-hours of the rolling period."""
    RESERVED = "reserved"
    """The free slots that it could use are kept for a job before it that needs several."""
    ASSIGNED = "assigned"
    """A worker was told to start it."""
    BEHIND_JOBS = "behind_jobs"
    """Other jobs start before it."""
    SLOTS_BUSY = "slots_busy"
    """It is the next job for the slots that it can use, and all of them are busy."""
    STARTS_NOW = "starts_now"
    """A slot is free for it; the dispatcher assigns it next."""


class StartEstimate(View):
    """The estimated start of a waiting job.

    An interval: of ten jobs, eight are expected to start between `earliest` and `latest`. The three
    times are `null` together.
    """

    made_at: datetime | None
    """When it was computed; `null` if it was not yet."""
    earliest: datetime | None
    """The job starts later with a probability of 90 %."""
    median: datetime | None
    """The job starts before and after this time with equal probability."""
    latest: datetime | None
    """The job starts before this time with a probability of 90 %."""
    unknown: str | None
    """Why there is no estimate, in a sentence; `null` if there is one."""


class EstimateAccuracy(View):
    """Error and coverage of the estimates that were made when a pool's jobs were queued."""

    starts: int
    """Number of starts that are compared with their first estimate: the latest ones."""
    median_error_seconds: float | None
    """Median distance of the actual start from the estimated median; `null` without starts."""
    coverage: float | None
    """Part of the starts that lay between `earliest` and `latest`, from 0 to 1; 0.8 is aimed at."""


class QueueTerms(View):
    """The terms that decide the place of a job, in the order in which they are compared."""

    priority_class: PriorityClass
    project_usage: float
    """Device-seconds of the project in the pool, those of a week ago counted half."""
    project_share: float
    """The project's part of the pool, from 0 to 1."""
    user_usage: float
    """Device-seconds of the person in the project and the pool, decayed likewise."""
    priority: int
    own_place: int = 0
    """Order among the person's jobs of the same priority, the lowest first: 0 unless one was moved
    by hand."""
    seed_index: int
    """Place of its first run among the runs of its experiment."""
    queued_at: datetime


class JobExplanation(View):
    """The reason why a job has not started, with everything that decides its place."""

    job_id: str
    state: JobState
    reason: WaitReason | None
    """`null` unless the job is queued."""
    sentence: str
    """The same in words."""
    terms: QueueTerms | None
    """`null` unless the job is queued in a pool that admits its project."""
    ahead: int
    """Jobs that start before it and compete with it for a worker."""
    ahead_is_cut: bool
    """Whether only the first jobs of the queue were looked at, so that more may be ahead."""
    own_ahead: tuple[str, ...]
    """IDs of those among them that the caller may read, the first to start first."""
    estimate: StartEstimate | None = None
    """When it is expected to start; `null` unless the job is queued."""
    accuracy: EstimateAccuracy | None = None
    """How well earlier starts in its pool were estimated; `null` unless the job is queued."""


class SubmissionPreview(View):
    """The jobs that a submission would queue, and when they would start; nothing was written."""

    project: str
    """Slug of the project."""
    experiment_id: str
    exists: bool
    """Whether the project has this experiment; the submission then adds the seeds that it lacks."""
    seeds: tuple[int, ...]
    """Seeds for which jobs would be queued, in their order in the queue."""
    seeds_there: tuple[int, ...]
    """Seeds of the submission for which none would be queued, since they have runs."""
    jobs: int
    """Number of jobs that would be queued."""
    packs: tuple[int, ...]
    """Number of seeds that each of these jobs trains."""
    pool: str
    priority_class: PriorityClass
    reason: WaitReason | None
    """Why the first job would wait; `null` if none would be queued."""
    sentence: str
    """When the first job would start, behind how many jobs, and otherwise why it would not."""
    ahead: int
    """Jobs that start before the first one and compete with it for a worker."""
    ahead_is_cut: bool
    """Whether only the first jobs of the queue were looked at, so that more may be ahead."""
    first: StartEstimate | None
    """Start of the job that starts first; `null` if none would be queued."""
    last: StartEstimate | None
    """Start of the job that starts last; `null` if none would be queued."""
    warnings: tuple[SubmissionWarning, ...] = ()
