"""Helpers of the built-in agents.

Counters, the switch between training and evaluation, and the generator of initial parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from workers.core.rng import derive_seed
from workers.core.types import Array


class AgentCounters(NamedTuple):
    """Counters of an agent: updates and env_steps since the beginning of the run."""

    updates: int = 0
    env_steps: int = 0
    """env_steps that were passed to `observe`."""
    acted: int = 0
    """env_steps for which actions were chosen since the last `observe`."""

    @property
    def acted_env_steps(self) -> int:
        """Number of env_steps for which actions were chosen so far."""
        return self.env_steps + self.acted


class TrainingSwitch:
    """Holds whether an agent stores transitions and learns; `turn_off` disables both."""

    def __init__(self) -> None:
        self.is_on = True

    @contextmanager
    def turn_off(self) -> Iterator[None]:
        """Sets `is_on` to false for the body, then restores its value, also after an error."""
        before, self.is_on = self.is_on, False
        try:
            yield
        finally:
            self.is_on = before


class ActionSampler:
    """Draws the random numbers of a stochastic evaluation, by a generator for each row."""

    def __init__(self) -> None:
        self._rows: Sequence[np.random.Generator] | None = None

    @contextmanager
    def use(self, rows: Sequence[np.random.Generator]) -> Iterator[None]:
        """Draws by these generators in the body; outside of it actions are greedy."""
        self._rows = rows
        try:
            yield
        finally:
            self._rows = None

    def draw(
        self, count: int, draw: Callable[[np.random.Generator], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Returns the random numbers of `count` rows; none where actions are greedy.

        Args:
            count: Number of rows.
            draw: Returns the random numbers of one row, arrays [1, ...].
        """
        if self._rows is None:
            return ()
        drawn = [draw(self._rows[row]) for row in range(count)]
        return tuple(np.concatenate(part) for part in zip(*drawn, strict=True))


def torch_generator(seed: int) -> torch.Generator:
    """Returns the generator for a run's initial parameters."""
    return torch.Generator().manual_seed(derive_seed(seed, "agent/parameters"))
