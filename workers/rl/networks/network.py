"""What networks have in common."""

from typing import Protocol

import torch
from torch import Tensor

from workers.rl.networks.parameter_layout import Parameters


class Network(Protocol):
    """Names and shapes of parameters, and the function of them.

    Holds no numbers, so one object serves any number of parameter sets.
    """

    @property
    def outputs(self) -> int:
        """Length of the vector that comes out per sample."""
        ...

    def __call__(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Returns outputs float32 [N, outputs] of inputs [N, ...]."""
        ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter by name."""
        ...

    def initial_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns fresh parameters as `torch.nn` draws them."""
        ...

    def initial_orthogonal(self, generator: torch.Generator, *, gain: float) -> dict[str, Tensor]:
        """Returns fresh parameters as on-policy agents draw them; `gain` scales the last layer."""
        ...
