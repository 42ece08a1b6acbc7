"""Documents that server and worker exchange: claim, work order, renewal and release.

Also the dispatch message on the queue.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from palestra.contract import outcomes
from palestra.contract.answers import EXACT
from palestra.contract.code import Code
from palestra.contract.definition import Definition
from palestra.contract.documents import Document
from palestra.contract.job_options import EvaluateOptions, Limits, Resources
from palestra.contract.names import (
    CompileMode,
    Counter,
    EvaluationPolicy,
    ExportFormat,
    Schedule,
    Seed,
    TrainerPhase,
)
from palestra.contract.states import Cause, Order, Outcome, ResumeQuality
from palestra.contract.telemetry import RunId, SnapshotFile, SnapshotId

WORK_ORDER_VERSION: Final = 3
"""Newest version of the work order that this code makes.

The dispatcher chooses only workers that speak the job's, which is the oldest that can express it
(`choose_work_order_version`). Since version 2 the definition in it is of schema version 2; version
3 adds definitions of schema version 3, `RunOrder.policy` and `Resources.simulator`.
"""
OLDEST_WORK_ORDER: Final = 2
"""Oldest version of the work order that this code makes."""

WORK_ORDER_VERSIONS: Final = (1, 2, 3)
"""Versions that this code executes: the orders of jobs that were queued before an upgrade hold the
definition brought up too.
"""

JobId = Annotated[str, Field(pattern=r"^job_[0-9a-z]{26}$")]
AttemptId = Annotated[str, Field(pattern=r"^att_[0-9a-z]{26}$")]
WorkerId = Annotated[str, Field(pattern=r"^wrk_[0-9a-z]{26}$")]
SlotIndex = Annotated[int, Field(ge=0, le=4_095)]
FurtherSlots = Annotated[tuple[SlotIndex, ...], Field(max_length=4_095)]


class DispatchMessage(Document):
    """The Celery message that asks a worker to claim a job. It may be lost or repeated."""

    v: Literal[1] = 1
    job_id: JobId
    expected_attempt: Annotated[int, Field(ge=1)]
    """Number that the attempt will have if nothing happened since it was sent."""
    slots: Annotated[int, Field(ge=1, le=4_096, exclude_if=lambda value: value == 1)] = 1
    """Slots to take for the attempt, left out where that is one: workers that do not take several
    refuse the key."""


class SnapshotFileRef(SnapshotFile):
    """A file of a snapshot and where to download it."""

    artifact_id: str


class SnapshotRef(Document):
    """A verified snapshot on the server."""

    snapshot_id: SnapshotId
    env_step: Counter
    update: Counter
    episode: Counter
    resume_exact: bool
    files: tuple[SnapshotFileRef, ...]


class Follow(Document):
    """The times of a continuous evaluation, and which snapshots and episodes it repeats."""

    throttle_seconds: Annotated[float, Field(ge=0)] = 0
    """Least time between the starts of two evaluations."""
    delay_seconds: Annotated[float, Field(ge=0)] = 0
    """Time before the first evaluation of the job's first attempt."""
    only_once: bool = True
    """False evaluates the newest snapshot again while none is newer."""
    same_episodes: bool = False
    """True where a person named the seed: every snapshot meets the same episodes."""


class RunOrder(Document):
    """One run of a work order. The work order of a pack has several."""

    run_id: RunId
    seed: Seed
    replicate: Counter = 0
    fence: Counter
    """The run's fence as raised by this claim, or as read for schedules that only read a snapshot.
    """
    snapshot: SnapshotRef | None = None
    """Training: resume from it; `null` starts afresh. Evaluate, export: the snapshot to load."""
    episodes: Annotated[int, Field(ge=1)] | None = None
    """Episodes of an evaluate job; `null` takes the definition's."""
    evaluation_seed: Seed | None = None
    """Seed of an evaluate job's episodes."""
    policy: Annotated[EvaluationPolicy | None, Field(exclude_if=lambda value: value is None)] = None
    """Actions of an evaluate job; `null`, which is left out, takes the definition's."""
    formats: tuple[ExportFormat, ...] = ()
    """Formats of an export job."""
    follow: Follow | None = None
    """For the continuous schedules, which ask for their snapshots (`FollowRequest`)."""


class WorkOrder(Document):
    """The document from which a trainer executes one attempt. Holds no credential."""

    version: Literal[1, 2, 3] = WORK_ORDER_VERSION
    attempt_id: AttemptId
    attempt_number: Annotated[int, Field(ge=1)]
    job_id: JobId
    experiment_id: str
    schedule: Schedule
    definition: Definition
    code: Code
    resources: Resources
    limits: Limits
    allow_code_change: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the attempt may run other code than `code`; left out where it may not."""
    runs: Annotated[tuple[RunOrder, ...], Field(min_length=1, max_length=1_024)]


class Claim(Document):
    """A worker's request for a job that was dispatched."""

    job_id: JobId
    expected_attempt: Annotated[int, Field(ge=1)]
    worker_id: WorkerId
    slot: SlotIndex
    """Index of the local slot whose lock the worker holds."""
    further_slots: Annotated[FurtherSlots, Field(exclude_if=lambda value: not value)] = ()
    """The other slots whose locks it holds for the attempt."""


class ClaimAnswer(Document):
    """The answer to a successful claim, which begins a lease of `lease_seconds`."""

    work_order: Annotated[WorkOrder, EXACT]
    token: str
    """Valid for this attempt only, and only until the attempt ends."""
    lease_seconds: Annotated[float, Field(gt=0)]
    renew_seconds: Annotated[float, Field(gt=0)]
    takes_tables: bool = True
    """Always true: workers up to commit 1b3b4e36718c send each series as a record without it."""
    takes_open_lines: bool = True
    """Always true: workers up to commit 1b3b4e36718c send complete lines only without it."""


class Backlog(Document):
    """Results of an attempt that are written on its worker and not stored on the server yet."""

    files: Counter = 0
    size: Counter = 0
    """In bytes."""
    problem: Annotated[str, Field(max_length=1_000)] | None = None
    """Why the latest upload did not succeed, in the server's words.

    `null` while uploads succeed.
    """
    delivering: bool = False
    """Whether the trainer has ended, so that the attempt only waits for its results to be stored.
    """


class Renewal(Document):
    """A supervisor's heartbeat."""

    trainer_pid: Annotated[int, Field(ge=0)] | None = None
    env_step: Counter = 0
    update: Counter = 0
    spooled_seq: Counter = 0
    """Last record in the spool.

    Its distance from the acknowledged record is the lag of the telemetry.
    """
    backlog: Backlog = Backlog()
    """Files that are not uploaded yet."""
    phase: Annotated[TrainerPhase | None, Field(exclude_if=lambda value: value is None)] = None
    """`null`, which is left out, while the trainer trains or has ended."""
    compile: Annotated[CompileMode | None, Field(exclude_if=lambda value: value is None)] = None
    """How updates run, as the trainer decided; `null`, which is left out, before it has."""


class RenewalAnswer(Document):
    """Answer to a renewal: the pending order and the acknowledged telemetry."""

    order: Order
    acked_seq: Counter
    lease_seconds: Annotated[float, Field(gt=0)]
    give_up: bool = False
    """Whether a person gave up the results that are not uploaded: release the attempt without them.
    """


class Adoption(Document):
    """A worker's request to adopt an attempt whose supervisor died while it uploaded results."""

    worker_id: WorkerId


class AdoptionAnswer(Document):
    """Answer to an adoption: the new lease of the attempt."""

    token: str
    slot: Annotated[int, Field(ge=0)]
    further_slots: FurtherSlots = ()
    """The other slots of the attempt. Workers of version 1 are not sent them."""
    renew_seconds: Annotated[float, Field(gt=0)]


class FollowRequest(Document):
    """The request of a continuous evaluation for the next snapshot of a run."""

    run_id: RunId
    evaluated: Annotated[tuple[SnapshotId, ...], Field(max_length=1_000)] = ()
    """The latest snapshots that this attempt evaluated, whose records may not have arrived yet."""
    again: bool = False
    """Whether the newest snapshot may be returned again if there is no newer one."""


class FollowAnswer(Document):
    """The next snapshot to evaluate, if there is one, and the state of the run's training."""

    snapshot: SnapshotRef | None = None
    """The newest verified snapshot of the run's history that the job has not evaluated.

    Its files are kept until the next snapshot is requested.
    """
    training: Literal["live", "waiting", "over"]
    """`live`: ask again later.

    `waiting`: no attempt trains now, release the slot. `over`: no further snapshot will come.
    """
    evaluated: Counter = 0
    """Evaluations of the job that are stored."""


class Failure(Document):
    """The failure of an attempt as users see it."""

    message: Annotated[str, Field(max_length=4_000)]
    """One sentence that a user can act on."""
    exception: Annotated[str, Field(max_length=200)] | None = None
    traceback: Annotated[str, Field(max_length=65_536)] | None = None


class End(Document):
    """Outcome and cause of an end, with the counters at that time."""

    outcome: Outcome
    cause: Cause
    failure: Failure | None = None
    resume_quality: ResumeQuality = ResumeQuality.FRESH
    env_step: Counter = 0
    update: Counter = 0
    episode: Counter = 0


class RunEnd(End):
    """How one run of a pack ended within an attempt."""

    run_id: RunId


class AttemptReport(End):
    """How an attempt ended.

    Written by the trainer, completed by the supervisor, sent at release.
    """

    provenance: dict[str, Any] = Field(default_factory=dict)
    """Packages, hardware and times that the trainer really ran with."""
    runs: Annotated[tuple[RunEnd, ...], Field(max_length=1_024)] = ()
    """Of a pack: how each run ended. The counters of the report are those of the first."""


class Release(Document):
    """The request that ends an attempt; repeating it changes nothing."""

    report: AttemptReport
    last_seq: Counter
    """Records in the spool.

    The server answers 409 `telemetry_missing` while fewer are acknowledged.
    """

    @model_validator(mode="after")
    def _causes_fit(self) -> Self:
        for end in (self.report, *self.report.runs):
            outcomes.check(end.outcome, end.cause)
        return self


def choose_work_order_version(
    schema_version: int, resources: Resources, evaluate: EvaluateOptions | None
) -> int:
    """Returns the oldest version of the work order that can express a job.

    Args:
        schema_version: That of the definition.
        resources: Resources of the job.
        evaluate: Options of a job that reads a snapshot.
    """
    needs_newest = (
        schema_version > OLDEST_WORK_ORDER
        or resources.simulator != "auto"
        or (evaluate is not None and evaluate.policy is not None)
    )
    return WORK_ORDER_VERSION if needs_newest else OLDEST_WORK_ORDER
