"""What the built-in agents share: the switch between training and evaluation, and the generator of initial parameters."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from workers.core.rng import derive_seed


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
