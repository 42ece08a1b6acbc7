"""What an explorer owes an agent. B environments."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from workers.core.types import Array, StateTree


class Explorer(Protocol):
    """Turns what a policy would do into what is done while training data are collected.

    Keeps a generator of its own, and draws as many numbers at a call whatever comes of them: what
    the stream gives next depends on the number of calls alone.
    """

    needs_values: ClassVar[bool]
    """Whether `explore` takes the values [B, actions] of all actions instead of the greedy ones."""

    def explore(self, greedy: Array, env_steps: int) -> Array:
        """Returns actions [B, ...] of the dtype of greedy ones.

        `greedy` itself, which is never written to, where they are the same.

        Args:
            greedy: Actions [B, ...] of the policy, or values float32 [B, actions].
            env_steps: Counter before these actions.
        """
        ...

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Says in which environments, bool [B], the episode ended with the last actions."""
        ...

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns gauges by series name, such as `explore/epsilon`."""
        ...

    def state_dict(self) -> StateTree:
        """Returns all that the continuation depends on."""
        ...

    def load_state_dict(self, state: StateTree) -> None:
        """Brings a freshly built explorer of the same definition to a captured state."""
        ...


class Greedy:
    """Explores nothing. Draws no random number."""

    needs_values: ClassVar[bool] = False

    def explore(self, greedy: Array, env_steps: int) -> Array:
        """Returns `greedy`."""
        del env_steps
        return greedy

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Does nothing."""

    def metrics(self, env_steps: int) -> Mapping[str, float]:
        """Returns nothing."""
        del env_steps
        return {}

    def state_dict(self) -> StateTree:
        """Returns nothing."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing."""
