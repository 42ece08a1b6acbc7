"""What the shell `workers.rl.agents.shells.replay_agent` asks of an algorithm.

N samples of a batch, R values of a report. The learning state of an algorithm is a named tuple of
tensors; `update` maps it and a batch to the next one and has no effect, so it runs as it stands,
compiled, or stacked over seeds.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from workers.acceleration.update_runner import Gradient
from workers.core.types import Array
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.networks.parameter_layout import Parameters

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class ReplayBatch(NamedTuple):
    """Transitions to learn from."""

    observation: Tensor
    """[N, ...]"""
    action: Tensor
    """Raw [N, ...]: int64 counted from 0, or float32 in [-1, 1] per dimension."""
    reward: Tensor
    """float32 [N]: discounted sum over the n steps."""
    next_observation: Tensor
    """[N, ...]: behind the n steps, or where the episode ended before."""
    discount: Tensor
    """float32 [N]: of the value of `next_observation`.

    0 where the episode terminated within the steps.
    """
    weight: Tensor
    """float32 [N]: importance weights; ones where sampling is uniform."""
    noise: tuple[Tensor, ...]
    """Random numbers that the algorithm asked for."""


def bootstrapped(batch: ReplayBatch, value: Tensor) -> Tensor:
    """Returns reward + discount * value float32 [N].

    The reward alone where the discount is 0, even where the value is no number.
    """
    return batch.reward + (batch.discount * value).masked_fill(batch.discount == 0, 0.0)


class Updated(NamedTuple, Generic[S]):
    """What an update returns."""

    state: S
    report: Tensor
    """[R]: the values of `report_names`."""
    error: Tensor
    """float32 [N]: size of each sample's error; its priority."""


class Acting(Protocol[S_co]):
    """The part of an algorithm that every shell uses: a state, and the policy in one field."""

    @property
    def report_names(self) -> tuple[str, ...]:
        """Series name of each value of a report; losses begin with `loss/`."""

    @property
    def layouts(self) -> Layouts:
        """Layout of each vector of parameters in the state, by field."""

    @property
    def actor(self) -> str:
        """Field of the state whose parameters act."""

    def start(self, generator: torch.Generator) -> S_co:
        """Returns the state before the first update, on the CPU."""

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns raw actions [N, ...]; without noise the greedy ones."""

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Returns what `act` does, on the CPU for few rows; `None` where there is no such way."""


class Algorithm(Acting[S], Protocol[S]):
    """The mathematics of one definition that learns from a replay memory: pure functions."""

    def update(self, gradient: Gradient, state: S, batch: ReplayBatch) -> Updated[S]:
        """Returns the state after one update."""

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns the random numbers of updates, float32 [updates, ...] each.

        Args:
            generator: The run's own.
            shape: (updates, N).
        """

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the random numbers for exploring actions, float32 [count, ...] each.

        Empty where an explorer draws them all.
        """

    @property
    def cycle(self) -> tuple["Update", ...]:
        """See `UpdateCycle.cycle`."""

    def between(self, state: Any, updates: int) -> Any:
        """See `UpdateCycle.between`."""


Update = Callable[..., Updated[Any]]
"""(gradient, state, batch) -> what `Algorithm.update` returns."""


class UpdateCycle:
    """Base of algorithms: how updates that are not all alike follow one another.

    An algorithm that moves its policy less often than its critics has a cycle of several updates.
    The shell counts updates, so each update stays pure and compiles without a branch; a
    `torch.where` would compute both.
    """

    update: Update

    @property
    def cycle(self) -> tuple[Update, ...]:
        """Consecutive updates; update number i is made by entry i modulo their number."""
        return (self.update,)

    def noise(self, generator: np.random.Generator, shape: Any) -> tuple[Array, ...]:
        """Returns the random numbers of updates; none by default."""
        del generator, shape
        return ()

    def acting_noise(self, generator: np.random.Generator, shape: Any) -> tuple[Array, ...]:
        """Returns the random numbers of exploring actions; none by default."""
        del generator, shape
        return ()

    def between(self, state: Any, updates: int) -> Any:
        """Returns the state after `updates` updates, changed where that takes no arithmetic.

        Copies of networks belong here: in compiled code they would be made with every update.
        """
        del updates
        return state
