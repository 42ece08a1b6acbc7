"""Base classes of explorers. Shapes: B environments."""

from collections.abc import Mapping
from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree
from workers.rl.exploration.random_blocks import RandomBlocks


class Explorer:
    """Turns greedy actions into the actions taken while training data are collected.

    Each explorer has its own random generator and draws the same amount of numbers in each call, so
    that the state of the generator depends on the number of calls alone.
    """

    def explore(self, greedy: Array, env_steps: int) -> Array:
        """Returns actions [B, ...] of the dtype of `greedy`.

        Never writes to `greedy`; returns `greedy` itself where no action is replaced.

        Args:
            greedy: Actions [B, ...] of the policy.
            env_steps: Training env_steps before these actions.
        """
        raise NotImplementedError

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Called after each step with the mask bool [B] of environments whose episode ended."""

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns gauges by series name, such as `explore/epsilon`."""
        del env_steps
        return {}

    def state_dict(self) -> StateTree:
        """Returns the state that future actions depend on."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new explorer of the same definition."""


class GreedyExplorer(Explorer):
    """Keeps the greedy actions; draws no random numbers."""

    def explore(self, greedy: Array, env_steps: int) -> Array:
        del env_steps
        return greedy


class DrawingExplorer(Explorer):
    """An explorer whose only state is its random numbers.

    A copy of it can explore for a pack, see `copy_with_draws`.

    Args:
        draws: The random numbers, used by this explorer only.
    """

    def __init__(self, draws: RandomBlocks) -> None:
        self.draws = draws

    def copy_with_draws(self, draws: RandomBlocks) -> Self:
        """Returns a copy that uses the random numbers `draws`, perhaps for more environments."""
        like = copy(self)
        like.draws = draws
        return like

    def state_dict(self) -> StateTree:
        """Returns the state of the random numbers."""
        return self.draws.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the random numbers from `state`."""
        self.draws.load_state_dict(state)
