"""Helpers of the built-in agents.

Counters, the switch between training and evaluation, and the generator of initial parameters.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from workers.core.rng import derive_seed


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


def torch_generator(seed: int) -> torch.Generator:
    """Returns the generator for a run's initial parameters."""
    return torch.Generator().manual_seed(derive_seed(seed, "agent/parameters"))
