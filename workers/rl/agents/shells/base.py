"""Small parts of the built-in agents.

Counters, the switch between training and evaluation, and the generator of initial parameters.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from workers.core.rng import derive_seed


class Counted(NamedTuple):
    """What an agent counts."""

    updates: int = 0
    env_steps: int = 0
    """Those observed."""
    acted: int = 0
    """env_steps for which actions were chosen since."""

    @property
    def at(self) -> int:
        """env_steps before the next action."""
        return self.env_steps + self.acted


class TrainingSwitch:
    """Whether an agent learns."""

    def __init__(self) -> None:
        self.on = True

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switches off for the body; the previous setting comes back however the body is left."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before


def torch_generator(seed: int) -> torch.Generator:
    """Returns the generator for a run's initial parameters."""
    return torch.Generator().manual_seed(derive_seed(seed, "agent/parameters"))
