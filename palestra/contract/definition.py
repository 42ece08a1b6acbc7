"""The definition: the immutable validated document that says what to train and how.

Its identity is computed by `identity.py`. Job options (`job_options.py`) are no part of it.
"""

from functools import cache
from typing import Annotated, Final, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from palestra.contract.agents import A3cParameters, AgentParameters, PpoParameters, Sb3Parameters
from palestra.contract.builtin_agents import BuiltinParameters
from palestra.contract.documents import Document
from palestra.contract.envs import EnvDefinition
from palestra.contract.free_parameters import FreeParameters
from palestra.contract.names import (
    EvaluationPolicy,
    ExportFormat,
    Name,
    SeriesName,
    StoredTitle,
    Text,
)

SCHEMA_VERSION: Final = 3
"""Version of the definition document that this code writes.

Older ones are brought up by `upgrade.py`.
"""

StepCount = Annotated[int, Field(ge=1, le=10**12)]


class LoopSpec(Document):
    """How long to train and how often the loop closes an epoch.

    The first bound that is reached ends the run.
    """

    env_steps: StepCount | None = None
    """Budget in env_steps, summed over environments, counted over the whole life of the run."""

    updates: StepCount | None = None
    """Budget in optimiser steps."""

    episodes: StepCount | None = None
    """Budget in finished episodes."""

    epoch_env_steps: StepCount = 1_000
    """env_steps per epoch; an EpochStatsRecord is sent at every epoch's end."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.env_steps is None and self.updates is None and self.episodes is None:
            raise ValueError("needs a budget: set env_steps, updates or episodes")
        return self


class EvaluationSpec(Document):
    """Evaluation during training: exploration off, on an environment and seeds of its own."""

    every_env_steps: StepCount | None = 5_000
    """Evaluate when a multiple of this many env_steps is crossed.

    `null` evaluates at the end only.
    """

    episodes: Annotated[int, Field(ge=1, le=100_000)] | None = 10
    """Whole episodes per evaluation; exclusive with `steps`."""

    steps: StepCount | None = None
    """env_steps per evaluation, unfinished episodes dropped; exclusive with `episodes`."""

    max_episode_steps: StepCount | None = None
    """Time limit of evaluation episodes; `null` takes the one of `env`."""

    during_episode: bool = True
    """Evaluate at the exact multiple; `false` waits for the end of the training episode."""

    policy: Annotated[EvaluationPolicy, Field(exclude_if=lambda value: value == "greedy")] = (
        "greedy"
    )
    """`greedy` takes the most probable actions, `stochastic` draws them from the policy as the
    training does, `both` evaluates twice on the same seeds. Scores, the best snapshot and
    `stop.success_score` follow greedy actions unless it is `stochastic`. Of agents whose policy is
    a distribution.
    """

    @property
    def scored_policy(self) -> Literal["greedy", "stochastic"]:
        """The actions that scores follow."""
        return "stochastic" if self.policy == "stochastic" else "greedy"

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if (self.episodes is None) == (self.steps is None):
            raise ValueError("set exactly one of episodes and steps")
        return self


class Retention(Document):
    """The rule by which old snapshots are deleted."""

    keep_last: Annotated[int, Field(ge=2, le=1_000)] = 2
    """Verified snapshots kept, newest first.

    At least two, so that a torn one never leaves nothing.
    """

    keep_best: bool = True
    """Also keep the snapshot with the best score: mean evaluation return, or the metric of a
    supervised run.
    """


class SnapshotSpec(Retention):
    """When snapshots are saved and how many are kept. The last state is always saved."""

    every_env_steps: StepCount | None = 10_000
    """Save when a multiple of this many env_steps is crossed.

    `null` saves at the end, at a pause and on errors only.
    """

    memory: Literal["full", "none"] = "full"
    """Whether the replay memory is saved. `none` makes every resume statistical."""


class StopSpec(Document):
    """Reasons to end a run before its budget."""

    success_score: float | None = None
    """End once the evaluation's score, in RL the mean return, is at least this."""

    success_evaluations: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Number of consecutive evaluations that must reach `success_score`."""


class NanGuard(Document):
    """Ends the run as `diverged` after a number of consecutive updates whose loss is not finite.

    Each update counts, also of a learn with several and up to the last one of the run. An agent
    that reports values but no loss is checked for all of them, and one that reports nothing for its
    parameters. The first value that is not finite is noted with series, env_step and episode.
    """

    name: Literal["nan_guard"] = "nan_guard"
    """Name of the hook."""

    updates: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Number of consecutive updates whose loss is not finite."""


class LearningRateSchedule(Document):
    """Changes the learning rate linearly to `final_value` over `env_steps`, then keeps it."""

    name: Literal["learning_rate_schedule"] = "learning_rate_schedule"
    """Name of the hook."""

    final_value: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Learning rate from `env_steps` on."""

    env_steps: StepCount
    """Length of the schedule in env_steps."""


class Video(Document):
    """Records a video of an evaluation episode, replayed from the seed of that episode.

    The environment must support the render mode `rgb_array`.
    """

    name: Literal["video"] = "video"
    """Name of the hook."""

    every_evaluations: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Number of evaluations from one video to the next; the first one is recorded."""

    episode: Literal["first", "best", "worst", "median"] = "best"
    """Which of the evaluation's episodes, by return."""

    max_frames: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    """Maximum length of a video in frames."""


HookSpec = Annotated[NanGuard | LearningRateSchedule | Video, Field(discriminator="name")]


class ExportSpec(Document):
    """The files that an export job, and the end of a successful run, write for inference."""

    formats: Annotated[tuple[ExportFormat, ...], Field(max_length=3)] = ()
    """`weights`: safetensors and a JSON description.

    `program`: a torch.export program; `onnx`: an ONNX file, which needs a worker with the packages
    onnx and onnxscript.
    """


class RlDefinition(Document):
    """A reinforcement-learning definition."""

    kind: Literal["rl"]
    """Discriminates definitions."""

    schema_version: Literal[2, 3] = SCHEMA_VERSION
    """Version of this document; a document is stored in the oldest one that can express it."""

    name: StoredTitle
    """Display name. Not part of the identity."""

    notes: Text = ""
    """Free text. Not part of the identity."""

    env: EnvDefinition
    agent: AgentParameters
    loop: LoopSpec
    evaluation: EvaluationSpec = EvaluationSpec()
    snapshot: SnapshotSpec = SnapshotSpec()
    hooks: Annotated[tuple[HookSpec, ...], Field(max_length=32)] = (NanGuard(),)
    stop: StopSpec = StopSpec()
    export: ExportSpec = ExportSpec()

    @model_validator(mode="after")
    def _schedules_end(self) -> Self:
        if isinstance(self.agent, Sb3Parameters) and self.loop.env_steps is None:
            raise ValueError(
                "an agent of Stable-Baselines3 needs loop.env_steps: its schedules end there"
            )
        return self

    @model_validator(mode="after")
    def _has_the_oldest_version(self) -> Self:
        """Workers of schema version 2 execute what that version can express."""
        self.__dict__["schema_version"] = 2 if self.evaluation.policy == "greedy" else 3
        return self

    @property
    def has_deterministic_policy(self) -> bool:
        """Whether a built-in agent's policy is no distribution; false of agents not known here."""
        return isinstance(self.agent, BuiltinParameters) and not self.agent.has_stochastic_policy

    @model_validator(mode="after")
    def _policy_can_be_drawn_from(self) -> Self:
        if self.evaluation.policy != "greedy" and self.has_deterministic_policy:
            raise ValueError(
                f"the policy of {self.agent.name} is deterministic: leave evaluation.policy at "
                "greedy"
            )
        return self

    @model_validator(mode="after")
    def _processes_fit(self) -> Self:
        if isinstance(self.agent, A3cParameters):
            if self.env.num_envs != 1:
                raise ValueError(
                    "each process of a3c steps one environment: leave env.num_envs at 1 and raise "
                    "agent.processes instead"
                )
            if self.loop.updates is not None:
                raise ValueError(
                    "the processes of a3c update while they step: set loop.env_steps or "
                    "loop.episodes, not loop.updates"
                )
        return self

    @model_validator(mode="after")
    def _rollout_fits(self) -> Self:
        if isinstance(self.agent, PpoParameters):
            rollout = self.agent.rollout_steps * self.env.num_envs
            if (
                self.agent.minibatch_size > rollout
                and "minibatch_size" not in self.agent.model_fields_set
            ):
                self.__dict__["agent"] = self.agent.model_copy(
                    update={"minibatch_size": rollout}
                )  # the default is no demand
            elif self.agent.minibatch_size > rollout:
                raise ValueError(
                    f"agent.minibatch_size {self.agent.minibatch_size} is larger than a rollout of "
                    f"{rollout} env_steps "
                    "(agent.rollout_steps x env.num_envs): lower one or raise the other"
                )
        return self


class PartSpec(Document):
    """A registered model function or input function with its parameters."""

    name: Name
    """Name that it is registered by. The catalogue of a pool lists those that its workers offer."""

    params: FreeParameters = Field(default_factory=dict)
    """Keyword parameters.

    Defaults are filled in at submission, where the catalogue has a schema.
    """


class SupervisedLoop(Document):
    """How long to train and how often the loop closes an epoch.

    The end of a finite input ends the run too.
    """

    updates: StepCount
    """Budget in optimiser steps, counted over the whole life of the run."""

    epoch_updates: StepCount = 1_000
    """Updates per epoch; an EpochStatsRecord is sent at every epoch's end."""


class SupervisedEvaluation(Document):
    """Evaluation during training: the model's metrics over the evaluation input, nothing learnt."""

    every_updates: StepCount | None = 1_000
    """Evaluate when a multiple of this many updates is crossed.

    `null` evaluates at the end only.
    """

    steps: StepCount | None = None
    """Batches per evaluation; `null` goes on until the input ends."""

    metric: SeriesName = "loss"
    """Metric that is the score: it decides which snapshot is the best, and success."""

    goal: Literal["minimize", "maximize"] = "minimize"
    """`minimize` takes minus the metric as the score, so that a higher score is always better.

    Needed with any metric but `loss`.
    """

    @model_validator(mode="after")
    def _goal_is_known(self) -> Self:
        if self.metric != "loss" and "goal" not in self.model_fields_set:
            raise ValueError("needs goal beside metric: minimize or maximize")
        return self


class SupervisedSnapshot(Retention):
    """When snapshots are saved and how many are kept. The last state is always saved."""

    every_updates: StepCount | None = 1_000
    """Save when a multiple of this many updates is crossed.

    `null` saves at the end, at a pause and on errors only.
    """


class SupervisedDefinition(Document):
    """A definition of supervised training: a model function fed by input functions."""

    kind: Literal["supervised"]
    """Discriminates definitions."""

    schema_version: Literal[2, 3] = SCHEMA_VERSION
    """Version of this document; a document is stored in the oldest one that can express it."""

    name: StoredTitle
    """Display name. Not part of the identity."""

    notes: Text = ""
    """Free text. Not part of the identity."""

    estimator: PartSpec
    """Model function: network, loss, metrics and optimiser."""

    train_input: PartSpec
    """Input function of the training."""

    evaluation_input: PartSpec
    """Input function of the evaluations; a finite one, unless `evaluation.steps` bounds it."""

    loop: SupervisedLoop
    evaluation: SupervisedEvaluation = SupervisedEvaluation()
    snapshot: SupervisedSnapshot = SupervisedSnapshot()
    hooks: Annotated[tuple[NanGuard, ...], Field(max_length=32)] = (NanGuard(),)
    stop: StopSpec = StopSpec()
    export: ExportSpec = ExportSpec()

    @model_validator(mode="after")
    def _has_the_oldest_version(self) -> Self:
        self.__dict__["schema_version"] = 2
        return self


Definition = Annotated[RlDefinition | SupervisedDefinition, Field(discriminator="kind")]
"""Every kind of definition."""


def read_definition(raw: bytes | str) -> RlDefinition | SupervisedDefinition:
    """Returns the definition in a JSON text of the current schema.

    Raises:
        pydantic.ValidationError: If the text is not a definition.
    """
    return _adapter().validate_json(raw)


@cache
def _adapter() -> TypeAdapter[RlDefinition | SupervisedDefinition]:
    return TypeAdapter(Definition)
