"""The resources of the HTTP API: one shape each, shared by server, client and dashboard."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from palestra.contract.answers import EXACT
from palestra.contract.catalogue import Catalogue
from palestra.contract.code import Code
from palestra.contract.definition import Definition
from palestra.contract.documents import Document
from palestra.contract.health import FindingView
from palestra.contract.job_options import (
    DependencyCondition,
    EvaluateOptions,
    Limits,
    Resources,
)
from palestra.contract.names import (
    CompileMode,
    Counter,
    EvaluationSource,
    PriorityClass,
    Schedule,
    Simulator,
    TrainerPhase,
)
from palestra.contract.queue import StartEstimate
from palestra.contract.states import (
    AttemptState,
    Cause,
    JobState,
    Outcome,
    ResumeQuality,
    RunState,
    SnapshotReason,
    SnapshotState,
)
from palestra.contract.telemetry import Number, RunId
from palestra.contract.views import SubmissionWarning, View
from palestra.contract.work_order import Failure


class ProgressView(View):
    """Progress of a run against its budget."""

    env_step: int
    update: int
    episode: int
    fraction: float | None
    """Share of the budget in [0, 1]; of the first bound to be reached."""
    env_steps_per_second: float | None


class BacklogView(View):
    """Results that are written on a worker and not stored on the server yet."""

    files: int
    size: int
    """In bytes."""
    problem: str | None
    """Why they are not stored; `null` while uploads succeed."""
    delivering: bool
    """Whether training is over, so that the job only waits for its results to be stored."""
    message: str
    """`problem` and `files` as one sentence."""


class SnapshotProgressView(View):
    """The lag of a run's stored snapshots behind those that its training has written."""

    written: int | None
    """`env_step` of the newest snapshot that the training has written, stored or not."""
    verified: int | None
    """`env_step` of the newest snapshot that is stored: the loss of the worker would cost the
    training since then.
    """


class EvaluationView(View):
    """An evaluation with the statistics of its episodes."""

    id: str
    run_id: str
    job_id: str
    attempt_id: str
    snapshot_id: str | None
    env_step: int
    update: int
    episode: int
    wall: float
    episodes: int
    mean: Number
    median: Number
    stdev: Number
    min: Number
    max: Number
    length_mean: Number
    length_median: Number
    length_stdev: Number
    length_min: Number
    length_max: Number
    success_rate: float | None = None
    cut_episodes: int | None = None
    """Episodes that were cut after 10,000 env_steps because nothing else limits them.

    `null` if the definition or the environment limits episodes.
    """
    returns: list[Number]
    metrics: dict[str, Number]
    """Of a supervised evaluation, by name; empty for one of episodes."""
    seed: int
    final: bool
    source: EvaluationSource = EvaluationSource.EVALUATION
    superseded: bool
    created_at: datetime


class ExperimentView(View):
    """An experiment with counts of its runs."""

    id: str
    """The generated, reproducible experiment ID, which is unique within its project."""
    project: str
    """Slug of its project."""
    name: str
    notes: str
    kind: str
    agent: str
    """Name of the agent; of a supervised experiment that of its model function."""
    env: str
    """Id of the environment; of a supervised experiment the name of its training input."""
    schema_version: int
    definition_hash: str
    code: Code
    state: RunState
    """Derived from the runs."""
    runs: dict[RunState, int]
    """Runs by state; absent states have none."""
    latest_evaluation: "ScoreView | None"
    """Over the runs' latest evaluations."""
    failures: list["FailureCount"]
    """Why runs failed: the most frequent reasons first, five at most."""
    created_at: datetime
    created_by: str
    """Login name; `(deleted user)` if the user was deleted while the answer was made."""
    archived_at: datetime | None
    max_running: int | None = None
    """Most of its jobs that run at the same time; `null` for no limit."""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """Values of the columns that a list was asked for, by key; of series, means over its runs."""


class ScoreView(View):
    """Statistics over the latest evaluation of each run."""

    runs: int
    metric: str | None
    """Metric of a supervised model that the values are of, as it was measured.

    `null` where they are returns.
    """
    mean: Number
    stdev: Number | None
    """Sample standard deviation; `null` for one run."""
    min: Number
    max: Number


class FailureCount(View):
    """Runs of an experiment that failed with the same cause and message."""

    cause: Cause | None
    message: str
    """One sentence that a user can act on."""
    runs: int
    run_id: str
    """The first of these runs."""


class ExperimentDetail(ExperimentView):
    """An experiment with its whole definition."""

    definition: Annotated[Definition, EXACT]
    warnings: list[SubmissionWarning] = Field(default_factory=list)
    """Warnings about the definition."""


class SubmittedExperiment(ExperimentDetail):
    """Answer to a submission; `warnings` also lists options that were not applied."""


class RunView(View):
    """A run as lists show it: its state, progress and evaluations."""

    id: str
    project: str
    """Slug of its project."""
    experiment_id: str
    created_by: str
    """Login name of the user who submitted it."""
    seed: int
    replicate: int
    state: RunState
    phase: TrainerPhase | None = None
    """What the attempt that trains it does while it does not train; `null` otherwise, and from a
    server or worker of schema 0042 or before."""
    cause: Cause | None
    failure: Failure | None
    fence: int
    progress: ProgressView
    resume_quality: ResumeQuality | None
    """How its latest training attempt began."""
    latest_evaluation: EvaluationView | None
    best_evaluation: EvaluationView | None
    snapshots: SnapshotProgressView
    not_uploaded: BacklogView | None
    """Results that are not stored yet, once training is over or while the server refuses them.

    `null` otherwise.
    """
    job_id: str | None
    """Latest training job; a test where none was queued yet."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """Values of the columns that a list was asked for, by key."""
    findings: list[FindingView]
    """What is wrong with its training by its curves, the gravest first; judged about every 30 s."""


class AttemptView(View):
    """One try at executing a job."""

    id: str
    job_id: str
    number: int
    worker_id: str
    worker_name: str
    slot: int
    slots: list[int]
    """All its slots, `slot` the first."""
    state: AttemptState
    outcome: Outcome | None
    cause: Cause | None
    failure: Failure | None
    fences: dict[str, int]
    """Fence of each run it carries."""
    resumed_from: dict[str, str | None]
    """Snapshot that each run began from."""
    resume_quality: ResumeQuality | None
    other_code: Code | None = None
    """Code that it ran with, where this is not the experiment's; known once it has ended."""
    compile: CompileMode | None = None
    """How its updates ran; `null` before its trainer has decided, where it makes none that can be
    compiled, and from a worker or server of schema 0042 or before."""
    simulator: Simulator | None = None
    """Which code computed the environments, where Palestra has its own; known once it has ended."""
    started_at: datetime
    ended_at: datetime | None
    acked_seq: int


class JobView(View):
    """A job with its state, its options and its place in the queue."""

    id: str
    project: str
    """Slug of its project."""
    experiment_id: str
    run_ids: list[str]
    seeds: list[int]
    """Seeds of its runs in the order of `run_ids`."""
    schedule: Schedule
    state: JobState
    cause: Cause | None
    failure: Failure | None
    waiting: str | None
    """Why a queued job has not started, in words; `null` otherwise."""
    not_uploaded: BacklogView | None
    """Results of its attempt that are not stored yet, once the work is over or while the server
    refuses them; `null` otherwise.
    """
    position: int | None
    """Place in its pool's queue from 1; `null` unless queued."""
    estimate: StartEstimate | None
    """When it is expected to start; `null` unless queued."""
    pool: str
    priority_class: PriorityClass = PriorityClass.NORMAL
    priority: int
    resources: Resources
    limits: Limits
    evaluate: EvaluateOptions | None
    afresh: bool = False
    """Whether its first attempt begins at the start of the run, whatever snapshots there are."""
    allow_code_change: bool = False
    """Whether it may go on with other code than the experiment's."""
    after: list[str] = Field(default_factory=list)
    """IDs of the jobs that had to end, or have to, before it starts."""
    on: DependencyCondition = "success"
    """Whether they have to succeed, or to end in any way."""
    attempts: int
    worker_id: str | None
    created_at: datetime
    created_by: str
    """Login name; `(deleted user)` if the user was deleted while the answer was made."""
    started_at: datetime | None
    finished_at: datetime | None


class RunDetail(RunView):
    """A run with its attempts and jobs."""

    attempts: list[AttemptView]
    jobs: list[JobView]
    definition: Annotated[Definition, EXACT]


class SnapshotFileView(View):
    """A file of a snapshot; `artifact_id` is set once its content is stored."""

    name: str
    size: int
    sha256: str
    artifact_id: str | None


class SnapshotView(View):
    """A snapshot with its position in the training and its files."""

    id: str
    run_id: str
    attempt_id: str
    state: SnapshotState
    reason: SnapshotReason
    env_step: int
    update: int
    episode: int
    fence: int
    score: Number | None
    resume_exact: bool
    best: bool
    newest: bool
    superseded: bool
    size: int
    files: list[SnapshotFileView]
    created_at: datetime


ArtifactKind = Literal["snapshot", "export", "video", "log", "other"]
"""Kind of a stored blob."""


class ArtifactView(View):
    """A stored file."""

    id: str
    run_id: str
    attempt_id: str
    snapshot_id: str | None
    name: str
    kind: ArtifactKind
    size: int
    sha256: str
    stored: bool
    """False until its content arrived and matched size and hash."""
    env_step: int | None = None
    """Position in the training that it belongs to, for example of a video."""
    created_at: datetime


class ArtifactDeclaration(Document):
    """The declaration of a file that a worker sends before it uploads the content."""

    run_id: RunId
    name: str
    kind: ArtifactKind
    size: Annotated[int, Field(ge=0, le=2**43)]
    sha256: str
    snapshot_id: str | None = None
    env_step: Counter | None = None
    """Position in the training that it belongs to; needed for videos."""


class ProvenanceView(View):
    """The full record of the code, packages and machine of a run's attempts."""

    run_id: str
    experiment_id: str
    seed: int
    submission: dict[str, Any]
    """Command, arguments, git head/status/log/diff and environment of the submitter."""
    attempts: list[dict[str, Any]]
    """Per attempt: worker, start time, packages, hardware, and the code that ran."""


class CancelledJobView(View):
    """A cancelled job, for a caller who may cancel it but not read its project."""

    id: str
    state: JobState


class CatalogueView(View):
    """Agents and environments of a pool, as its workers reported them."""

    pool: str
    known: bool
    """False until a worker registered."""
    catalogue: Catalogue


class JobAction(Document):
    """Body of a request to pause or cancel a job."""

    reason: Annotated[str, Field(max_length=500)] = ""


class ResumeAction(JobAction):
    """Body of a request to resume a job."""

    allow_code_change: bool = False
    """Goes on with the code that the workers have, where this is not the experiment's."""
