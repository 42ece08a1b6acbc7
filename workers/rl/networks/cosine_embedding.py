"""Cosine embedding of quantile fractions.

Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement Learning".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.rl.networks import initialisation
from workers.rl.networks.mlp import Floats, activate, affine
from workers.rl.networks.parameter_layout import Parameters


@dataclass(frozen=True, slots=True)
class CosineEmbedding:
    """Multiplies features psi(x) element-wise by embedded fractions phi(tau) (section 3.2).

    phi_j(tau) = ReLU(sum over i = 0 … n - 1 of cos(pi i tau) w_ij + b_j), equation 4.
    """

    prefix: str
    """Prefix of parameter names; `tau` gives `tau.0.weight` and `tau.0.bias`."""
    features: int
    """Length of psi(x)."""
    cosines: int = 64
    """Number of cosines, n."""

    def __call__(self, parameters: Parameters, features: Tensor, fractions: Tensor) -> Tensor:
        """Returns float32 [N, K, features].

        Args:
            parameters: Tensors by name; see `shapes`.
            features: psi(x), float32 [N, features].
            fractions: tau, float32 [N, K] in [0, 1].
        """
        return features.unsqueeze(-2) * self.embed(parameters, fractions)

    def embed(self, parameters: Parameters, fractions: Tensor) -> Tensor:
        """Returns phi(tau), float32 [..., features] of fractions [...]."""
        multiples = math.pi * torch.arange(
            self.cosines, dtype=fractions.dtype, device=fractions.device
        )
        cosines = (fractions.unsqueeze(-1) * multiples).cos()
        return torch.relu(
            linear(
                cosines, parameters[f"{self.prefix}.0.weight"], parameters[f"{self.prefix}.0.bias"]
            )
        )

    def embed_numpy(self, parameters: Mapping[str, Floats], fractions: Floats) -> Floats:
        """Computes `embed` in numpy, which is faster for the few rows of acting.

        Parameters and fractions of n stacked networks have a first dimension n.
        """
        multiples = np.float32(math.pi) * np.arange(self.cosines, dtype=np.float32)
        cosines = np.cos(fractions[..., None] * multiples)
        weight, bias = parameters[f"{self.prefix}.0.weight"], parameters[f"{self.prefix}.0.bias"]
        lead = cosines.shape[:-1]
        flat = cosines.reshape(*weight.shape[:-2], -1, self.cosines)
        embedded = affine(flat, weight, bias)
        activate(embedded, "relu")
        return embedded.reshape(*lead, self.features)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter."""
        return initialisation.layer_shapes(self._weights())

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial weights and biases, drawn as in `torch.nn.Linear`."""
        return initialisation.draw_uniform_layers(self._weights(), generator)

    def _weights(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.prefix}.0": (self.features, self.cosines)}
