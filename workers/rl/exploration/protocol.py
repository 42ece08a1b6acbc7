"""Interface of explorers. Shapes: B environments."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree


class Explorer(Protocol):
    """Turns greedy actions into the actions taken while training data are collected.

    Has a random generator that nothing else uses, and draws the same amount of numbers in each
    call: the state of the generator depends on the number of calls alone.
    """

    def explore(self, greedy: Array, env_steps: int) -> Array:
        """Returns actions [B, ...] of the dtype of `greedy`.

        Never writes to `greedy`; returns `greedy` itself where no action is replaced.

        Args:
            greedy: Actions [B, ...] of the policy.
            env_steps: Counter before these actions.
        """
        ...

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Marks the environments, bool [B], whose episode ended with the last actions."""
        ...

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns gauges by series name, such as `explore/epsilon`."""
        ...

    def state_dict(self) -> StateTree:
        """Returns the state that future actions depend on."""
        ...

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new explorer of the same definition."""
        ...


class Greedy:
    """Keeps the greedy actions; draws no random numbers."""

    def explore(self, greedy: Array, env_steps: int) -> Array:
        del env_steps
        return greedy

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Does nothing."""

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns no gauges."""
        del env_steps
        return {}

    def state_dict(self) -> StateTree:
        """Returns an empty state."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing."""
