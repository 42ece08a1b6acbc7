"""Noisy layers with factorised Gaussian noise.

Fortunato et al. 2018, "Noisy Networks for Exploration".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.rl.networks import initialisation
from workers.rl.networks.mlp import Activation, Floats, activate, affine
from workers.rl.networks.parameter_layout import Parameters

SIGMA_0: Final = 0.5
"""Initial size of the noise (section 3.2)."""


@dataclass(frozen=True, slots=True)
class NoisyMlp:
    """Fully connected noisy layers (equation 9).

    y = (mu_w + sigma_w * eps_w) x + mu_b + sigma_b * eps_b.

    The noise is an argument, so that a call is a pure function. Without noise the mean weights are
    used, as in evaluations.
    """

    prefix: str
    """Prefix of parameter names.

    `q` gives `q.0.weight`, `q.0.bias`, `q.0.weight_sigma`, `q.0.bias_sigma` …
    """
    sizes: tuple[int, ...]
    """Inputs, units of each hidden layer, outputs."""
    activation: Activation = "relu"
    sigma: float = SIGMA_0
    """Initial deviation of the weights times the square root of the number of inputs."""
    _noise_sizes: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_noise_sizes", tuple(size for pair in pairwise(self.sizes) for size in pair)
        )

    @property
    def outputs(self) -> int:
        """Length of the output vector."""
        return self.sizes[-1]

    @property
    def noise_size(self) -> int:
        """Number of standard normal numbers of a call: inputs plus outputs, over all layers."""
        return sum(self._noise_sizes)

    def __call__(
        self, parameters: Parameters, inputs: Tensor, noise: Tensor | None = None
    ) -> Tensor:
        """Returns outputs float32 [..., outputs].

        Args:
            parameters: Tensors by name; see `shapes`.
            inputs: float32 [..., inputs].
            noise: float32 [noise_size] to perturb the weights alike for all samples, or [...,
                noise_size] for each sample; `None` for the mean weights.
        """
        parts = (
            [None] * len(self._noise_sizes)
            if noise is None
            else [_scale(part) for part in torch.split(noise, list(self._noise_sizes), -1)]
        )
        for index in range(len(self.sizes) - 1):
            inputs = _layer(
                parameters, f"{self.prefix}.{index}", inputs, parts[2 * index], parts[2 * index + 1]
            )
            if index < len(self.sizes) - 2:
                inputs = torch.relu(inputs) if self.activation == "relu" else torch.tanh(inputs)
        return inputs

    def forward_numpy(
        self, parameters: Mapping[str, Floats], inputs: Floats, noise: Floats | None = None
    ) -> Floats:
        """Computes the same function in numpy, which is faster for the few rows of acting.

        Args:
            parameters: Arrays by name, float32; for n stacked networks with a first dimension n.
            inputs: float32 [N, inputs], or [n, N, inputs] for stacked networks.
            noise: float32, broadcast to [N, noise_size] or [n, N, noise_size]; `None` for the mean
                weights.

        Returns:
            A new array [N, outputs] or [n, N, outputs].
        """
        ends = np.cumsum(self._noise_sizes)[:-1]
        parts = (
            None if noise is None else np.split(np.sign(noise) * np.sqrt(np.abs(noise)), ends, -1)
        )
        for index in range(len(self.sizes) - 1):
            name = f"{self.prefix}.{index}"
            outputs = affine(inputs, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
            if parts is not None:
                perturbed = affine(
                    inputs * parts[2 * index],
                    parameters[f"{name}.weight_sigma"],
                    parameters[f"{name}.bias_sigma"],
                )
                outputs += parts[2 * index + 1] * perturbed
            if index < len(self.sizes) - 2:
                activate(outputs, self.activation)
            inputs = outputs
        return inputs

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter: means and deviations of weights and biases.

        Weights are [outputs, inputs], biases [outputs].
        """
        shapes: dict[str, tuple[int, ...]] = {}
        for index, (inputs, outputs) in enumerate(pairwise(self.sizes)):
            name = f"{self.prefix}.{index}"
            shapes |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
            shapes |= {f"{name}.weight_sigma": (outputs, inputs), f"{name}.bias_sigma": (outputs,)}
        return shapes

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial means and deviations (section 3.2).

        Means are drawn from U(-1/sqrt(inputs), 1/sqrt(inputs)); deviations are
        sigma_0/sqrt(inputs).
        """
        parameters: dict[str, Tensor] = {}
        for index, (inputs, outputs) in enumerate(pairwise(self.sizes)):
            name, sigma = f"{self.prefix}.{index}", self.sigma * inputs**-0.5
            parameters |= initialisation.draw_uniform_layers({name: (outputs, inputs)}, generator)
            parameters[f"{name}.weight_sigma"] = torch.full((outputs, inputs), sigma)
            parameters[f"{name}.bias_sigma"] = torch.full((outputs,), sigma)
        return parameters


def _scale(noise: Tensor) -> Tensor:
    """Returns f(x) = sgn(x) sqrt(|x|), the factors of equations 10 and 11."""
    return noise.sign() * noise.abs().sqrt()


def _layer(
    parameters: Parameters,
    name: str,
    inputs: Tensor,
    over_inputs: Tensor | None,
    over_outputs: Tensor | None,
) -> Tensor:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    if over_inputs is None or over_outputs is None:
        return linear(inputs, weight, bias)
    weight_sigma, bias_sigma = parameters[f"{name}.weight_sigma"], parameters[f"{name}.bias_sigma"]
    if over_outputs.dim() == 1:
        noisy = torch.addcmul(weight, weight_sigma, over_outputs.unsqueeze(1) * over_inputs)
        return linear(inputs, noisy, torch.addcmul(bias, bias_sigma, over_outputs))
    # (f(eps_out) f(eps_in)^T * sigma_w) x = f(eps_out) * sigma_w (f(eps_in) * x): this form needs
    # no weight matrix per sample.
    return linear(inputs, weight, bias) + over_outputs * linear(
        inputs * over_inputs, weight_sigma, bias_sigma
    )
