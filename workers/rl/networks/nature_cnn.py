"""The convolutional network of the deep Q-network.

Mnih et al. 2015, "Human-level control through deep reinforcement learning", Methods.
"""

import math
from dataclasses import dataclass, field
from typing import Final, TypeGuard

import numpy as np
import torch
from gymnasium import Space, spaces
from torch import Tensor
from torch.nn.functional import conv2d

from workers.core.errors import DefinitionError
from workers.rl.networks import initialisation
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.parameter_layout import Parameters

_CONVOLUTIONS: Final = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Number of filters, kernel size and stride of each layer."""
SMALLEST: Final = 36
"""Minimum height and width of an image for which the last convolution has an output."""


@dataclass(frozen=True, slots=True)
class NatureCnn:
    """Three convolutions and fully connected layers, with rectifiers between them.

    Images are [C, H, W] or [H, W, C], where C is the smaller of the first and the last size, or
    [H, W]. Bytes are divided by the upper bound of their channel, floats are not scaled. Inputs may
    also be flat float vectors from `Encoding`; passing bytes directly is faster.

    Raises:
        DefinitionError: If `shape` is not that of an image, or the image is too small.
    """

    prefix: str
    """Prefix of parameter names; `q` gives `q.conv.0.weight` … and `q.0.weight` …"""
    shape: tuple[int, ...]
    """Shape of one image."""
    sizes: tuple[int, ...] = (512,)
    """Units of each fully connected layer; if empty, the outputs are those of the convolutions."""
    has_last_activation: bool = False
    """Whether a rectifier also follows the last layer, so that the outputs are features for another
    network.
    """
    high: tuple[int, ...] = (255,)
    """Upper bound of bytes, of each channel or of all."""
    _channels: int = field(init=False, repr=False)
    _has_channels_last: bool = field(init=False, repr=False)
    _head: Mlp = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = _image_shape(self.shape)
        if len(shape) != 3:
            raise DefinitionError(
                "the network of Mnih et al. 2015 reads images [C, H, W] or [H, W, C], not "
                f"{self.shape}: flatten them"
            )
        channels_last = _has_channels_last(shape)
        channels, *sides = (shape[2], *shape[:2]) if channels_last else shape
        if min(sides) < SMALLEST:
            raise DefinitionError(
                f"images of {sides[0]}x{sides[1]} are too small for the network of Mnih et al. "
                "2015: "
                f"resize them to at least {SMALLEST}x{SMALLEST}, or take a network without "
                "convolutions"
            )
        head = Mlp(
            self.prefix, (_filters_out(sides), *self.sizes), "relu", self.has_last_activation
        )
        for name, value in (
            ("_channels", channels),
            ("_has_channels_last", channels_last),
            ("_head", head),
        ):
            object.__setattr__(self, name, value)

    @property
    def outputs(self) -> int:
        """Length of the output vector."""
        return self._head.outputs

    def __call__(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Returns outputs float32 [N, outputs] of images [N, *shape] or flat ones [N, size]."""
        images = self._images(inputs)
        for index, (_, _, stride) in enumerate(_CONVOLUTIONS):
            name = f"{self.prefix}.conv.{index}"
            images = torch.relu(
                conv2d(images, parameters[f"{name}.weight"], parameters[f"{name}.bias"], stride)
            )
        return self._head(parameters, images.flatten(1))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter.

        Weights of convolutions are [filters, channels, kernel size, kernel size], weights of fully
        connected layers [outputs, inputs], biases [outputs].
        """
        return {**initialisation.layer_shapes(self._convolutions()), **self._head.shapes()}

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns weights and biases drawn from U(-1/sqrt(fan-in), 1/sqrt(fan-in)).

        This is the default of `torch.nn`.
        """
        return {
            **initialisation.draw_uniform_layers(self._convolutions(), generator),
            **self._head.draw_uniform(generator),
        }

    def draw_orthogonal(self, generator: torch.Generator, *, gain: float) -> dict[str, Tensor]:
        """Returns orthogonal weights and zero biases.

        The gain is `gain` for the last fully connected layer and sqrt(2) for the other layers.
        """
        convolutions = initialisation.draw_orthogonal_layers(
            self._convolutions(), generator, gain=2**0.5
        )
        return {**convolutions, **self._head.draw_orthogonal(generator, gain=gain)}

    def _images(self, inputs: Tensor) -> Tensor:
        """Returns float32 [N, C, H, W].

        Byte images and images [H, W, C] are in the channels-last memory format, in which
        convolutions on the CPU are faster.
        """
        images = inputs.reshape(inputs.shape[0], *_image_shape(self.shape))
        if self._has_channels_last:
            images = images.permute(0, 3, 1, 2)
        if images.dtype != torch.uint8:
            return images.float()
        if not self._has_channels_last and self._channels > 1:
            images = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        return images.float() * self._factor(images)

    def _factor(self, images: Tensor) -> float | Tensor:
        if len(set(self.high)) == 1:
            return 1 / self.high[0]
        return torch.cat(
            [torch.full((1, 1, 1), 1 / high, device=images.device) for high in self.high]
        )

    def _convolutions(self) -> dict[str, tuple[int, ...]]:
        channels = (self._channels, *(filters for filters, _, _ in _CONVOLUTIONS))
        sides = enumerate(_CONVOLUTIONS)
        return {
            f"{self.prefix}.conv.{index}": (filters, channels[index], side, side)
            for index, (filters, side, _) in sides
        }


def image_features(prefix: str, space: spaces.Box, sizes: tuple[int, ...]) -> NatureCnn:
    """Returns a network whose outputs are features of a space's images; see `is_image`."""
    shape = _image_shape(space.shape)
    axes = (0, 1) if _has_channels_last(shape) else (1, 2)
    high = np.maximum(space.high.reshape(shape).max(axes), 1)
    return NatureCnn(
        prefix, space.shape, sizes, has_last_activation=True, high=tuple(high.tolist())
    )


def is_image(space: Space[object]) -> TypeGuard[spaces.Box]:
    """Returns whether the elements of a space are uint8 images that `NatureCnn` supports."""
    if (
        not isinstance(space, spaces.Box)
        or space.dtype != np.uint8
        or len(space.shape) not in {2, 3}
    ):
        return False
    *_, second, largest = sorted(space.shape)
    return min(second, largest) >= SMALLEST


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of an image with its channels, of which one may be left out."""
    return (1, *shape) if len(shape) == 2 else shape


def _has_channels_last(shape: tuple[int, ...]) -> bool:
    return shape[2] < shape[0]


def _filters_out(sides: list[int]) -> int:
    """Returns the number of outputs of the last convolution for one image."""
    for _, side, stride in _CONVOLUTIONS:
        sides = [(length - side) // stride + 1 for length in sides]
    return _CONVOLUTIONS[-1][0] * math.prod(sides)
