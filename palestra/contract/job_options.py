"""Job options: how and where the runs of a definition are executed.

Never part of an experiment's identity.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from palestra.contract import acceptance
from palestra.contract.code import BuiltinCode, Code
from palestra.contract.definition import Definition, Video
from palestra.contract.documents import Document
from palestra.contract.names import (
    EvaluationPolicy,
    ExportFormat,
    Name,
    PriorityClass,
    Schedule,
    Seed,
)

WallSeconds = Annotated[int, Field(ge=1, le=31_536_000)]
StallSeconds = Annotated[int, Field(ge=10, le=604_800)]
GraceSeconds = Annotated[int, Field(ge=1, le=3_600)]
MaxAttempts = Annotated[int, Field(ge=1, le=100)]
MAX_SEEDS: Final = 1_000
"""Seeds that the server takes in one submission."""

MaxRunning = Annotated[int, Field(ge=1, le=10_000)]
Priority = Annotated[int, Field(ge=-100, le=100)]

JobId = Annotated[str, Field(min_length=1, max_length=64)]
DependencyCondition = Literal["success", "any"]
After = Annotated[tuple[JobId, ...], Field(max_length=100)]
FollowUp = Literal["evaluate", "export"]

SnapshotChoice = Annotated[str, Field(pattern=r"^(newest|best|snp_[0-9a-z]{26})$")]


class Resources(Document):
    """The resources that one attempt needs from a worker."""

    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    """Whole GPUs. 0 runs on a CPU share."""

    cpu_threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads given to torch."""

    memory_mib: Annotated[int, Field(ge=64, le=16_777_216)] | None = None
    """Memory of the trainer in MiB; `null` sets no limit."""

    compile: Literal["auto", "eager", "compiled", "cudagraph"] = "auto"
    """How updates of built-in agents run: `eager` as they stand, `compiled` whole, `cudagraph` as
    one CUDA graph. `auto` compiles where so many updates follow that it pays, by measurements of
    the agent's kind of update. The numbers differ by roundings, so with `auto` every attempt of a
    run keeps the decision of the first one.
    """

    pack: Literal["auto", "off"] | Annotated[int, Field(ge=2, le=64)] = "off"
    """Seeds that one job trains as one batch, at most: `off` makes a job per seed; `auto` spreads
    the seeds of the submission over the slots of the pool's workers, at most 16 per job, where the
    agent can be packed. The job shows the size that was chosen: another one may change roundings.
    """

    evaluation: Literal["inline", "process"] = "inline"
    """Where evaluations during training run: `process` has one of their own, on the CPU, and
    training does not wait for them.
    """

    # Left out where it is `auto`: workers of earlier work orders refuse the key.
    simulator: Annotated[
        Literal["auto", "registered"], Field(exclude_if=lambda value: value == "auto")
    ] = "auto"
    """Which code computes the environments. `auto` takes Palestra's own where it has one: for
    Gymnasium's CartPole, whose results it equals to the last bit in less time. `registered` always
    takes that of the registration.
    """


class Limits(Document):
    """Bounds on one attempt, enforced by its supervisor on the monotonic clock."""

    wall_seconds: WallSeconds | None = None
    """Wall time of an attempt.

    Reaching it saves a snapshot and ends the job as failed with the cause `time_limit`. The time in
    which a continuous evaluation waits for a snapshot does not count.
    """

    stall_seconds: StallSeconds = 1_800
    """Longest time without a new env_step or update before the attempt is ended as stalled.

    Steps of evaluations count.
    """

    grace_seconds: GraceSeconds = 120
    """Time between the wish to stop and SIGKILL."""

    max_attempts: MaxAttempts = 20
    """Attempts after infrastructure failures before the job fails. Failed starts, for which the
    worker is at fault, are counted separately.
    """


class EvaluateOptions(Document):
    """Options of the schedules that read a snapshot."""

    snapshot: SnapshotChoice = "newest"
    """`newest`, `best` or a snapshot's id."""

    episodes: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Episodes, or batches of a supervised run; `null` takes the definition's."""

    seed: Seed | None = None
    """Seed of the evaluation's episodes.

    `null` derives a fresh one from the job, other than the run's own evaluations.
    """

    policy: Annotated[EvaluationPolicy | None, Field(exclude_if=lambda value: value is None)] = None
    """For `evaluate` and `continuous_eval`: `greedy` takes the most probable actions, `stochastic`
    draws them from the policy, `both` evaluates twice; `null` takes the definition's. Evaluations
    of another policy than the definition's have series of their own, and neither scores nor
    `stop.success_score` follow them.
    """

    formats: Annotated[tuple[ExportFormat, ...], Field(min_length=1, max_length=3)] | None = None
    """For `export`: `null` takes the definition's formats, or `weights` where it names none."""

    @field_validator("formats")
    @classmethod
    def _formats_differ(
        cls, formats: tuple[ExportFormat, ...] | None
    ) -> tuple[ExportFormat, ...] | None:
        if formats is not None and acceptance.find_repeated(formats):
            raise ValueError("names a format twice: name each format once")
        return formats

    throttle_seconds: Annotated[float, Field(ge=0, le=604_800)] = 0
    """For the continuous schedules: least time between the starts of two evaluations, while the run
    is trained and after that.
    """

    delay_seconds: Annotated[float, Field(ge=0, le=604_800)] = 0
    """For the continuous schedules: time before the first evaluation."""

    only_once: bool = True
    """For `continuous_eval`: evaluate each snapshot once.

    False evaluates the newest again, with other episodes, while none is newer.
    """


class JobOptions(Document):
    """Queue options of a submission."""

    schedule: Schedule = Schedule.TRAIN
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=10_000)] = (0,)
    """One run per seed. The server takes at most 1,000 in one submission; the command, the Python
    client and the dashboard send more as several submissions of the same definition."""

    pool: Name = "default"
    """Pool of workers."""

    priority_class: PriorityClass = PriorityClass.NORMAL
    """Class in the pool's queue; an earlier class starts before a later one."""

    priority: Priority = 0
    """Order among the person's own jobs of a class: higher goes first."""

    after: After = ()
    """IDs of jobs of the project that have to end before."""

    on: DependencyCondition = "success"
    """Whether they have to succeed (one that fails or is cancelled cancels the job, with the cause
    `dependency`), or have to end in `any` way."""

    then: Annotated[tuple[FollowUp, ...], Field(max_length=2)] = ()
    """Jobs to queue for each run after its training, each once the one before has succeeded."""

    max_running: MaxRunning | None = None
    """Most jobs of the experiment that run at the same time; `null` sets no limit, and leaves that
    of an existing experiment as it is."""

    resources: Resources = Resources()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _starts_runs(self) -> Self:
        if not self.schedule.starts_runs:
            raise ValueError(
                f"schedule {self.schedule.value} reads the snapshots of a run: queue it on the run "
                "once that exists"
            )
        return self

    @model_validator(mode="after")
    def _then_follows_a_training(self) -> Self:
        if len(set(self.then)) != len(self.then):
            raise ValueError("then names a job twice: name evaluate and export once")
        if self.then and not self.schedule.writes_training_state:
            raise ValueError(
                f"then queues jobs after a training, which {self.schedule.value} is not: leave it "
                "out"
            )
        return self

    @model_validator(mode="after")
    def _seeds_differ(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must be different: name each seed once")
        return self


VIDEO_NEEDS_INLINE: Final = (
    "the hook video films within the training: leave it out, or set resources.evaluation to inline"
)


_CHOOSES_POLICY: Final = frozenset({Schedule.EVALUATE, Schedule.CONTINUOUS_EVAL})


class JobRequest(Document):
    """A schedule to queue on an existing run."""

    schedule: Schedule
    evaluate: EvaluateOptions = EvaluateOptions()
    pool: Name | None = None
    """Pool of workers; `null` takes the one of the run's training."""

    priority_class: PriorityClass = PriorityClass.NORMAL
    priority: Priority = 0

    after: After = ()
    """IDs of jobs of the project that have to end before."""

    on: DependencyCondition = "success"
    """Whether they have to succeed (one that fails or is cancelled cancels the job, with the cause
    `dependency`), or have to end in `any` way."""

    resources: Resources = Resources()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        wanted, schedule = self.evaluate, self.schedule.value
        if wanted.policy is not None and self.schedule not in _CHOOSES_POLICY:
            raise ValueError(
                "evaluate.policy is for the schedules evaluate and continuous_eval, not for "
                f"{schedule}"
            )
        if not self.schedule.follows_training:
            if wanted.throttle_seconds or wanted.delay_seconds or not wanted.only_once:
                raise ValueError(
                    "throttle_seconds, delay_seconds and only_once are for the continuous "
                    f"schedules, not for {schedule}"
                )
            return self
        if wanted.snapshot != "newest":
            raise ValueError(
                f"{schedule} follows the run from snapshot to snapshot: leave evaluate.snapshot at "
                "newest"
            )
        if self.schedule is Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA and (
            wanted.seed is not None or not wanted.only_once
        ):
            raise ValueError(
                f"{schedule} has the training's own episodes: leave evaluate.seed at null and "
                "evaluate.only_once at true"
            )
        if not wanted.only_once and wanted.throttle_seconds < 1:
            raise ValueError(
                "evaluate.only_once false goes on without end: set evaluate.throttle_seconds to 1 "
                "or more"
            )
        return self


GIT_CODE_IS_NOT_TAKEN: Final = (
    "the state of a work tree changed the experiment's ID and nothing else, since no code went to "
    "the workers: put the code into a package "
    "whose entry points name the agent or the environment, install it on the workers and leave "
    "`code` out; the ID then holds its digest"
)


class RetryRequest(Document):
    """A request to train a failed or cancelled run again, with the options of its last job."""

    origin: Literal["newest", "start"] = "newest"
    """`newest` goes on from the newest verified snapshot, from the start where there is none.

    `start` begins the training anew and supersedes all that the run has recorded.
    """

    allow_code_change: bool = False
    """Goes on with the code that the workers have, where this is not the experiment's."""

    reason: Annotated[str, Field(max_length=500)] = ""
    """Kept in the audit log."""


class Submission(Document):
    """What a user submits: a definition, options for its jobs, and the code it runs.

    `examples/*.yaml` are such documents.
    """

    definition: Definition
    options: JobOptions = JobOptions()
    code: Code = BuiltinCode()
    provenance: dict[str, Any] = Field(default_factory=dict)
    """What `palestra.provenance.capture` recorded on the submitter's machine.

    Stored with the runs, never part of the identity.
    """

    @field_validator("code")
    @classmethod
    def _code_reaches_the_workers(cls, code: Code) -> Code:
        if code.kind == "git":
            raise ValueError(GIT_CODE_IS_NOT_TAKEN)
        return code

    @model_validator(mode="after")
    def _is_meant(self) -> Self:
        acceptance.check(self.definition, self.options.resources.pack, self.provenance)
        return self

    @model_validator(mode="after")
    def _video_sees_the_evaluated_agent(self) -> Self:
        if self.options.resources.evaluation == "process" and any(
            isinstance(hook, Video) for hook in self.definition.hooks
        ):
            raise ValueError(VIDEO_NEEDS_INLINE)
        return self

    def split(self) -> list[Self]:
        """Returns submissions of at most `MAX_SEEDS` seeds each that together have these seeds."""
        seeds = self.options.seeds
        if len(seeds) <= MAX_SEEDS:
            return [self]
        return [
            self.model_copy(
                update={
                    "options": self.options.model_copy(
                        update={"seeds": seeds[first : first + MAX_SEEDS]}
                    )
                }
            )
            for first in range(0, len(seeds), MAX_SEEDS)
        ]
