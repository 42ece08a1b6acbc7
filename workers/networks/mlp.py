"""Multi-layer perceptrons as functions of their parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.networks.layout import Parameters

Activation = Literal["relu", "tanh"]

_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True, slots=True)
class Mlp:
    """Fully connected layers with a non-linearity between them and none behind the last.

    Holds shapes and names only: the numbers are passed in.
    """

    prefix: str
    """First part of each parameter's name; `q` gives `q.0.weight`, `q.0.bias`, `q.1.weight` …"""
    sizes: tuple[int, ...]
    """Inputs, units of each hidden layer, outputs."""
    activation: Activation = "relu"
    _layers: tuple[tuple[str, str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        layers = tuple((f"{self.prefix}.{i}.weight", f"{self.prefix}.{i}.bias") for i in range(len(self.sizes) - 1))
        object.__setattr__(self, "_layers", layers)

    def __call__(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Returns outputs float32 [N, outputs] of inputs float32 [N, inputs]."""
        activate = _ACTIVATIONS[self.activation]
        *hidden, (last_weight, last_bias) = self._layers
        for weight, bias in hidden:
            inputs = activate(linear(inputs, parameters[weight], parameters[bias]))
        return linear(inputs, parameters[last_weight], parameters[last_bias])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter: weights [outputs, inputs], biases [outputs]."""
        shapes: dict[str, tuple[int, ...]] = {}
        for (weight, bias), (inputs, outputs) in zip(self._layers, pairwise(self.sizes), strict=True):
            shapes[weight] = (outputs, inputs)
            shapes[bias] = (outputs,)
        return shapes

    def initial_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns weights and biases drawn from U(-1/sqrt(inputs), 1/sqrt(inputs)): the initialisation of `torch.nn.Linear`."""
        parameters: dict[str, Tensor] = {}
        for (weight, bias), (inputs, outputs) in zip(self._layers, pairwise(self.sizes), strict=True):
            bound = inputs**-0.5
            parameters[weight] = torch.empty(outputs, inputs).uniform_(-bound, bound, generator=generator)
            parameters[bias] = torch.empty(outputs).uniform_(-bound, bound, generator=generator)
        return parameters

    def initial_orthogonal(self, generator: torch.Generator, *, gain: float) -> dict[str, Tensor]:
        """Returns orthogonal weights and zero biases, as on-policy agents use them (Engstrom et al. 2020, "Implementation Matters").

        Args:
            generator: Source of randomness.
            gain: Scale of the last layer; hidden layers have sqrt(2).
        """
        parameters: dict[str, Tensor] = {}
        for index, (weight, bias) in enumerate(self._layers):
            outputs, inputs = self.sizes[index + 1], self.sizes[index]
            scale = gain if index == len(self._layers) - 1 else 2**0.5
            parameters[weight] = torch.nn.init.orthogonal_(torch.empty(outputs, inputs), scale, generator=generator)
            parameters[bias] = torch.zeros(outputs)
        return parameters
