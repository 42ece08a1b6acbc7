"""From observations of a space to the inputs of a network."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import Space, spaces
from torch import Tensor

from workers.core.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a batch of observations becomes a batch of vectors. Works on tensors of any device, compiled and under `vmap`."""

    size: int
    """Length of the vector of one observation."""
    shape: tuple[int, ...]
    """Shape of one observation."""
    dtype: np.dtype[Any]
    """What a memory stores observations as."""
    first: int | None = None
    """Smallest value of a discrete space, whose values become one-hot vectors; `None` for arrays."""
    scale: float = 1.0
    """Factor on arrays: 1/255 for bytes."""

    def __call__(self, observation: Tensor) -> Tensor:
        """Returns float32 [N, size] of observations [N, *shape]."""
        if self.first is not None:
            values = torch.arange(self.first, self.first + self.size, device=observation.device)
            return (observation.unsqueeze(-1) == values).float()
        flat = observation.float() if len(self.shape) == 1 else observation.reshape(observation.shape[0], self.size).float()
        return flat if self.scale == 1.0 else flat * self.scale


def encoding_of(space: Space[Any]) -> Encoding:
    """Returns the encoding of an observation space: boxes and binaries are flattened, discrete values become one-hot vectors.

    Raises:
        DefinitionError: If the built-in networks cannot read the space.
    """
    match space:
        case spaces.Discrete():
            return Encoding(size=int(space.n), shape=(), dtype=np.dtype(np.int64), first=int(space.start))
        case spaces.Box() | spaces.MultiBinary():
            shape = tuple(space.shape)
            floating = np.issubdtype(space.dtype, np.floating)
            dtype = np.dtype(np.float32) if floating else np.dtype(space.dtype)
            return Encoding(math.prod(shape), shape, dtype, scale=1 / 255 if dtype == np.uint8 and isinstance(space, spaces.Box) else 1.0)
    raise DefinitionError(f"the built-in agents read Box, Discrete and MultiBinary observations, not {space}: wrap the environment")
