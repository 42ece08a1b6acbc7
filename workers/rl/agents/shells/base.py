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
    def at(self) -> int:
        """Number of env_steps for which actions were chosen so far."""
        return self.env_steps + self.acted


class TrainingSwitch:
    """Holds whether an agent stores transitions and learns; `off` disables both for a while."""

    def __init__(self) -> None:
        self.on = True

    @contextmanager
    def off(self) -> Iterator[None]:
        """Sets `on` to false for the body and restores its previous value, also after an error."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before


def torch_generator(seed: int) -> torch.Generator:
    """Returns the generator for a run's initial parameters."""
    return torch.Generator().manual_seed(derive_seed(seed, "agent/parameters"))
