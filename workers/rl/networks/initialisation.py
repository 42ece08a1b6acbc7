"""Initial values of weights and biases, drawn from a generator of torch on the CPU."""

import math
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

DDPG_BOUND: Final = 3e-3
"""Bound of the initial weights of the last layer of DDPG's actor and critic, whose outputs are then
near 0 (Lillicrap et al. 2016, section 7).
"""


def draw_uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    """Returns float32 [*shape] from U(-bound, bound)."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


def fan_in(shape: tuple[int, ...]) -> int:
    """Returns the number of inputs of one output for a weight [outputs, inputs, ...]."""
    return math.prod(shape[1:])


def draw_linear_uniform(
    shape: tuple[int, ...], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Returns weight [*shape] and bias [outputs] from U(-1/sqrt(fan-in), 1/sqrt(fan-in)).

    This is the default of `torch.nn.Linear` and `Conv2d`.
    """
    bound = fan_in(shape) ** -0.5
    return draw_uniform(shape, bound, generator), draw_uniform(shape[:1], bound, generator)


def draw_linear_orthogonal(
    shape: tuple[int, ...], gain: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Returns a weight [*shape] with orthogonal rows of length `gain`, and a bias of zeros.

    If the weight has fewer columns than rows, its columns are orthogonal instead.
    """
    return torch.nn.init.orthogonal_(torch.empty(shape), gain, generator=generator), torch.zeros(
        shape[:1]
    )


def draw_uniform_layers(
    weights: Mapping[str, tuple[int, ...]], generator: torch.Generator, last: float | None = None
) -> dict[str, Tensor]:
    """Returns weights and biases of layers, drawn by `draw_linear_uniform`.

    Args:
        weights: Shape of the weight of each layer by the layer's name, in order.
        generator: Source of randomness.
        last: Bound for weight and bias of the last layer, such as `DDPG_BOUND`; `None` for that of
            `draw_linear_uniform`.
    """
    parameters: dict[str, Tensor] = {}
    for index, (name, shape) in enumerate(weights.items()):
        if last is not None and index == len(weights) - 1:
            weight, bias = (
                draw_uniform(shape, last, generator),
                draw_uniform(shape[:1], last, generator),
            )
        else:
            weight, bias = draw_linear_uniform(shape, generator)
        parameters[f"{name}.weight"], parameters[f"{name}.bias"] = weight, bias
    return parameters


def draw_orthogonal_layers(
    weights: Mapping[str, tuple[int, ...]], generator: torch.Generator, *, gain: float
) -> dict[str, Tensor]:
    """Returns orthogonal weights and zero biases, as on-policy agents use them.

    Engstrom et al. 2020, "Implementation Matters".

    Args:
        weights: Shape of the weight of each layer by the layer's name, in order.
        generator: Source of randomness.
        gain: Scale of the last layer; the others have sqrt(2).
    """
    parameters: dict[str, Tensor] = {}
    for index, (name, shape) in enumerate(weights.items()):
        scale = gain if index == len(weights) - 1 else 2**0.5
        parameters[f"{name}.weight"], parameters[f"{name}.bias"] = draw_linear_orthogonal(
            shape, scale, generator
        )
    return parameters


def layer_shapes(weights: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each weight and bias, from the shape of each layer's weight."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in weights.items():
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
    return shapes
