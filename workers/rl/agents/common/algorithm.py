"""Interface of algorithms for the shell `workers.rl.agents.shells.replay_agent`.

N samples of a batch, R values of a report. The learning state of an algorithm is a named tuple of
tensors. `update` returns the next state for a state and a batch and has no side effect, so it can
be run eagerly, compiled, or stacked over seeds by `vmap`.
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
    """float32 [N]: discounted sum of rewards over n steps."""
    next_observation: Tensor
    """[N, ...]: observation after n steps, or the last one of the episode if it ended before."""
    discount: Tensor
    """float32 [N]: discount factor of the value of `next_observation`.

    0 if the episode terminated within the n steps.
    """
    weight: Tensor
    """float32 [N]: importance weights; ones for uniform sampling."""
    noise: tuple[Tensor, ...]
    """Random numbers drawn by `Algorithm.noise` for this batch."""


def bootstrap_target(batch: ReplayBatch, value: Tensor) -> Tensor:
    """Returns reward + discount * value float32 [N].

    Where the discount is 0 the result is the reward, even if the value is NaN.
    """
    return batch.reward + (batch.discount * value).masked_fill(batch.discount == 0, 0.0)


class UpdateResult(NamedTuple, Generic[S]):
    """Result of an update: new state, report and errors."""

    state: S
    report: Tensor
    """[R]: the values of `report_names`."""
    error: Tensor
    """float32 [N]: size of each sample's error, from which prioritized replay gets priorities."""


class PolicyAlgorithm(Protocol[S_co]):
    """Interface of algorithms that every shell uses: the learning state and the policy."""

    @property
    def report_names(self) -> tuple[str, ...]:
        """Series name of each value of a report; losses begin with `loss/`."""

    @property
    def layouts(self) -> Layouts:
        """Layout of each vector of parameters in the state, by field."""

    @property
    def actor(self) -> str:
        """Name of the state's field that holds the policy's parameters."""

    def start(self, generator: torch.Generator) -> S_co:
        """Returns the state before the first update, on the CPU."""

    def act(self, parameters: Parameters, observation: Tensor, noise: tuple[Tensor, ...]) -> Tensor:
        """Returns raw actions [N, ...]; without noise the greedy ones."""

    def act_arrays(
        self, parameters: Mapping[str, Array], observation: Array, noise: tuple[Array, ...]
    ) -> Array | None:
        """Computes `act` in numpy, for few rows on the CPU; `None` if that is not supported."""


class Algorithm(PolicyAlgorithm[S], Protocol[S]):
    """Interface of algorithms that learn from a replay memory, as pure functions."""

    def update(self, gradient: Gradient, state: S, batch: ReplayBatch) -> UpdateResult[S]:
        """Returns the state after one update."""

    def noise(self, generator: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, ...]:
        """Returns the random numbers of updates, float32 [updates, ...] each.

        Args:
            generator: Generator of the run.
            shape: Number of updates and batch size, (updates, N).
        """

    def acting_noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the random numbers for exploring actions, float32 [count, ...] each.

        Empty if the explorer draws all random numbers itself.
        """

    @property
    def cycle(self) -> tuple["Update", ...]:
        """Update functions that are called in turn; see `UpdateCycle.cycle`."""

    def copy_targets(self, state: Any, updates: int) -> Any:
        """Returns the state after `updates` updates; see `UpdateCycle.copy_targets`."""


Update = Callable[..., UpdateResult[Any]]
"""(gradient, state, batch) -> what `Algorithm.update` returns."""


class UpdateCycle:
    """Base of algorithms: a cycle of update functions, and changes between updates.

    An algorithm that updates its policy less often than its critics has a cycle of several update
    functions. The shell counts updates and selects the function, so that each function is pure and
    compiled without a branch; `torch.where` would compute both branches.
    """

    update: Update

    @property
    def cycle(self) -> tuple[Update, ...]:
        """Update functions; update number i is made by the entry at i modulo their number."""
        return (self.update,)

    def noise(self, generator: np.random.Generator, shape: Any) -> tuple[Array, ...]:
        """Returns the random numbers of updates; none by default."""
        del generator, shape
        return ()

    def acting_noise(self, generator: np.random.Generator, shape: Any) -> tuple[Array, ...]:
        """Returns the random numbers of exploring actions; none by default."""
        del generator, shape
        return ()

    def copy_targets(self, state: Any, updates: int) -> Any:
        """Returns the state after `updates` updates, with changes that need no computation.

        Periodic copies to target networks are made here: compiled code would copy the network at
        every update.
        """
        del updates
        return state
