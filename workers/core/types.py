"""The types of values that the parts of the trainer exchange.

Dimensions: T vector steps, B environments, N samples. Owns no behaviour beyond small derivations;
must not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from palestra.contract.names import CompileMode
from palestra.contract.states import SnapshotReason as SnapshotReason

if TYPE_CHECKING:
    from gymnasium import Space

Array = npt.NDArray[Any]
"""A numpy array of any dtype."""

JsonObject = dict[str, Any]
"""An object of a JSON document: values are str, int, float, bool, None, lists and such objects."""

StateTree = dict[str, Any]
"""Nested state: dicts with string keys and lists, whose leaves are torch tensors, numpy arrays,
int, float, str, bool, None, `PartFiles` or a `RowStream`.

A snapshot writes tensors as safetensors, arrays as npz and the rest as JSON; nothing else can be
saved. Reading a snapshot returns tensors on the CPU, `PartFiles` as `PartFilesDirectory`, and a
`RowStream` as a dictionary of arrays.
"""


@dataclass(frozen=True, slots=True)
class PartFiles:
    """A leaf of a state tree: files that a part writes itself, in its own format.

    For example the files of a PFRL agent's `save`. A snapshot holds at most one such leaf.

    The files are written at the top level of the snapshot's directory, so that the part's own
    `load` can be called with that directory.
    """

    save: Callable[[str], None]
    """Writes the files into a directory, which exists and is empty."""


@dataclass(frozen=True, slots=True)
class PartFilesDirectory:
    """Directory of the files of a `PartFiles`, in a snapshot that was read."""

    directory: str


class Unit(StrEnum):
    """The counter that a trigger or a budget reads."""

    ENV_STEPS = "env_steps"
    UPDATES = "updates"
    ITERATIONS = "iterations"
    EPOCHS = "epochs"
    EPISODES = "episodes"
    WALL_SECONDS = "wall_seconds"


class StopReason(StrEnum):
    """The reason why the engine stopped: the first four end the run, the others the attempt."""

    BUDGET = "budget"
    SUCCESS_SCORE = "success_score"
    REQUESTED = "requested"
    INPUT_EXHAUSTED = "input_exhausted"
    DIVERGED = "diverged"
    PAUSE = "pause"
    CANCEL = "cancel"
    DRAIN = "drain"
    TIME_LIMIT = "time_limit"

    @property
    def completes_run(self) -> bool:
        """Whether the run is over, so that a final evaluation is due."""
        return self in _COMPLETING


_COMPLETING: Final = frozenset(
    {StopReason.BUDGET, StopReason.SUCCESS_SCORE, StopReason.REQUESTED, StopReason.INPUT_EXHAUSTED}
)


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """Amount that one collect gathers. Exactly one of the first three fields is set."""

    vector_steps: int | None = None
    """Steps of the vector environment, so B env_steps each."""
    env_steps: int | None = None
    """At least this many env_steps, in whole vector steps."""
    episodes: int | None = None
    """At least this many whole episodes, counted by start order; no other episode is begun."""
    needs_whole_episodes: bool = False
    """With `env_steps`: whole episodes only, until their lengths sum up to at least that many
    (garage's sampler).
    """

    def __post_init__(self) -> None:
        if [self.vector_steps, self.env_steps, self.episodes].count(None) != 2:
            raise ValueError("set exactly one of vector_steps, env_steps and episodes")
        if (self.vector_steps or self.env_steps or self.episodes or 0) < 1:
            raise ValueError("a collect gathers at least one step or episode")


@dataclass(frozen=True, slots=True)
class LearnSchedule:
    """When the engine calls `learn`: data, read by the engine."""

    every_env_steps: int
    """`learn` is due when the number of env_steps crosses a multiple of this.

    If several multiples are crossed at once, `learn` is called once with the sum of their updates.
    """
    updates: int
    """Number of updates requested per multiple of `every_env_steps`."""
    warmup_env_steps: int = 0
    """Multiples below this number of env_steps are ignored."""
    learns_at_episode_end: bool = False
    """Whether `learn` is also due once when an episode ended and no multiple was crossed."""


class EpisodeEnd(NamedTuple):
    """A finished training episode."""

    env_index: int
    vector_step: int
    """Index in [0, T) of the step of the experience that ended it."""
    episode_return: float
    """Undiscounted."""
    episode_length: int
    """In env_steps."""
    terminated: bool
    """False if the episode was truncated."""


@dataclass(slots=True)
class Experience:
    """The transitions of one collect, time-major.

    The arrays belong to the collector and are valid until its next collect: a learner copies what
    it keeps. There is no `done`: bootstrap where `terminated` is false; reset recurrent state where
    either flag is true.
    """

    observation: Array
    """[T, B, ...], dtype of the space: the observation from which the action was chosen."""
    action: Array
    """[T, B, ...], int64 for discrete spaces, else the dtype of the space."""
    reward: npt.NDArray[np.float64]
    """float64 [T, B], as the environment returned it.

    Rewards of Atari games are clipped if the definition requests it.
    """
    terminated: npt.NDArray[np.bool_]
    """bool [T, B]: the episode ended in a terminal state.

    If the definition requests it, also true where a life was lost and the episode continues.
    """
    truncated: npt.NDArray[np.bool_]
    """bool [T, B]: the episode was truncated, by a time limit for example."""
    next_observation: Array
    """[T, B, ...]: the true successor, also where the episode ended."""
    episodes: Sequence[EpisodeEnd] = ()
    """Episodes that ended, in order of their end."""
    active: npt.NDArray[np.bool_] | None = None
    """bool [T, B], or `None` if every slot is active: false where an environment was not stepped,
    so that the other arrays' entries are meaningless.
    """
    env_steps: int = 0
    """Number of active slots: T x B if `active` is `None`.

    A collector that does not return its transitions reports the steps here, with T of 0.
    """
    learn_reports: Sequence[LearnReport] = ()
    """Reports of updates that the collector made while collecting, in addition to `learn`."""

    @classmethod
    def without_transitions(cls, num_envs: int) -> Experience:
        """Returns an experience without transitions: T is 0."""
        none = np.zeros((0, num_envs))
        flags = none.astype(np.bool_)
        return cls(none, none, none, flags, flags, none)

    def columns(self, part: slice) -> Experience:
        """Returns views of the arrays for a range of environments; all slots must be active.

        The result does not contain the episodes that ended.
        """
        reward = self.reward[:, part]
        flags = self.terminated[:, part], self.truncated[:, part]
        seen, successors = self.observation[:, part], self.next_observation[:, part]
        return Experience(
            seen, self.action[:, part], reward, *flags, successors, env_steps=reward.size
        )

    def ends(self, before: int) -> list[tuple[int, EpisodeEnd]]:
        """Returns (env_step of the end, counted from `before`; episode) for each ended episode."""
        active = self.active
        if active is None:
            return [
                (before + (end.vector_step + 1) * self.reward.shape[1], end)
                for end in self.episodes
            ]
        return [(before + int(active[: end.vector_step + 1].sum()), end) for end in self.episodes]


class LearnReport(NamedTuple):
    """The updates that one call of `learn` made, and their values."""

    updates: int
    """Number of optimiser steps made, at most the requested number.

    0 if the memory does not hold enough transitions.
    """
    values: Any = ()
    """One scalar per name of the agent's `report_names`, mean over the call's updates: a 1-D tensor
    or array, or a sequence of scalars.

    Empty if `updates` is 0. The device may still be computing the values, so they must not be
    overwritten later.
    """
    rows: Any = None
    """The values of each update in order, [updates, names], as a tensor, array or sequence.

    `None` if `values` is all that is known of each update.
    """


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """One evaluation: the columns of `palestra.contract.telemetry.Evaluation` without the clock."""

    returns: tuple[float, ...]
    """Undiscounted return of each counted episode, in start order."""
    lengths: tuple[int, ...]
    """env_steps of each counted episode, in start order."""
    seed: int
    """Seed that the episodes derive from."""
    mean: float
    median: float
    stdev: float
    """Sample standard deviation (n - 1); 0 for one episode."""
    min: float
    max: float
    length_mean: float
    length_median: float
    length_stdev: float
    length_min: float
    length_max: float
    success_rate: float | None = None
    """Fraction of the counted episodes that the environment reported as a success.

    `None` if the environment does not report success.
    """
    cut_episodes: int | None = None
    """Number of counted episodes that were cut because nothing else limits them.

    `None` if the definition or the environment limits episodes.
    """
    is_partial: bool = False
    """Whether no episode finished within the steps, so the only return is of a partial episode."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Means over examples of a supervised evaluation, whose one return is the score."""
    drawn: EvaluationResult | None = None
    """Beside a greedy result: that of actions drawn from the policy, if both were evaluated."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Whether a resume is exact, and notes about state that was not restored."""

    is_exact: bool = True
    """Whether the continuation can be bit-exact."""
    notes: tuple[tuple[str, str], ...] = ()
    """Code and sentence of each thing that could not be restored."""


class GoalRule(NamedTuple):
    """The entries of a goal-conditioned environment's vectors that are goals, and the reward."""

    achieved: slice
    """The G entries of the achieved goal."""
    desired: slice
    """The G entries of the desired goal."""
    judge: Callable[[Array, Array], tuple[Array, Array]]
    """Maps achieved goals [M, G] and desired goals [M, G] to rewards, float64 [M], and whether the
    episode terminates, bool [M].
    """


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The arguments of an agent's factory in addition to its parameters."""

    observation_space: Space[object]
    """Space of one environment."""
    action_space: Space[Any]
    """Space of one environment."""
    num_envs: int
    """B of the training environment."""
    seed: int
    """The run's seed; derive every generator from it with `workers.core.rng.derive_seed`."""
    device: str = "cpu"
    """A torch device."""
    compile: CompileMode = "eager"
    """How updates run."""
    options: JsonObject = field(default_factory=dict)
    """Additional options of third-party factories; empty for built-in agents."""
    goals: GoalRule | None = None
    """Goal rule of an environment whose observations hold an achieved and a desired goal.

    Hindsight memory requires it.
    """
