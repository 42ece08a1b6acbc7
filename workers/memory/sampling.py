"""Rules by which places of a memory are chosen."""

import numpy as np
import numpy.typing as npt

from workers.core.rng import generator_state, load_generator_state
from workers.core.types import StateTree


class UniformSampler:
    """Every place is as likely as every other, each draw independent of the others.

    Args:
        generator: Source of randomness; the sampler's own.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def places(self, size: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Returns places int64 [*shape] in [0, size)."""
        return self._generator.integers(size, size=shape)

    def state_dict(self) -> StateTree:
        """Returns the state of the generator."""
        return {"generator": generator_state(self._generator)}

    def load_state_dict(self, state: StateTree) -> None:
        """Brings the generator to a captured state."""
        load_generator_state(self._generator, state["generator"])
