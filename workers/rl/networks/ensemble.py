"""Networks of one shape with the same inputs, computed together.

The parameters are stacked, so that a layer of all networks is one batched matrix product.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from workers.rl.networks.mlp import Activation, Mlp
from workers.rl.networks.parameter_layout import Parameters

_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
}


@dataclass(frozen=True, slots=True)
class Ensemble:
    """`members` fully connected networks with separate, stacked parameters.

    Each member has a non-linearity between its layers.
    """

    prefix: str
    """Prefix of parameter names, which are those of `Mlp`.

    Weights are [members, outputs, inputs], biases [members, outputs].
    """
    members: int
    sizes: tuple[int, ...]
    """Inputs, units of each hidden layer, outputs."""
    activation: Activation = "relu"

    def __call__(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Returns outputs float32 [n, N, outputs] of inputs float32 [N, inputs].

        The parameters are those of all members, or of n of them, as from `first`.
        """
        function, last = _ACTIVATIONS[self.activation], len(self.sizes) - 2
        features = inputs.expand(len(parameters[f"{self.prefix}.0.weight"]), *inputs.shape)
        for index in range(last + 1):
            weight, bias = (
                parameters[f"{self.prefix}.{index}.weight"],
                parameters[f"{self.prefix}.{index}.bias"],
            )
            features = torch.baddbmm(bias.unsqueeze(1), features, weight.mT)
            if index < last:
                features = function(features)
        return features

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter."""
        return {name: (self.members, *shape) for name, shape in self._member().shapes().items()}

    def first(self, parameters: Parameters) -> dict[str, Tensor]:
        """Returns the parameters of the first member, with the first dimension kept: [1, ...]."""
        return {name: tensor[:1] for name, tensor in parameters.items()}

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial weights and biases; each member's are from `Mlp.draw_uniform`."""
        drawn = [self._member().draw_uniform(generator) for _ in range(self.members)]
        return {name: torch.stack([one[name] for one in drawn]) for name in drawn[0]}

    def _member(self) -> Mlp:
        return Mlp(self.prefix, self.sizes, self.activation)
