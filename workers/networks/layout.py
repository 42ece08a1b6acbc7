"""Parameters as a dictionary of tensors, and as the one flat vector that optimisers work on."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from workers.core.types import Array

Parameters = Mapping[str, Tensor]
"""Tensors by name, such as `q.0.weight`. Functions of parameters never write to them."""


class Layout:
    """Names and shapes of the tensors that one flat vector holds, in order.

    One vector makes an optimiser step a handful of operations whatever the depth of a network, the gradient one tensor, a copy of a
    network one reference, and a stack of seeds one matrix.

    Args:
        shapes: Shape of each tensor by name.
    """

    __slots__ = ("_counts", "_items", "shapes", "size")

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self._items = tuple(self.shapes.items())
        self._counts = [math.prod(shape) for shape in self.shapes.values()]
        self.size = sum(self._counts)

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """Returns the tensors as views of `vector` [size]."""
        parts = torch.split_with_sizes(vector, self._counts)
        return {name: part.view(shape) for (name, shape), part in zip(self._items, parts, strict=True)}

    def split_array(self, vector: Array) -> dict[str, Array]:
        """Returns the same as arrays: views of `vector` [..., size]."""
        lead, begin, parts = vector.shape[:-1], 0, {}
        for (name, shape), count in zip(self._items, self._counts, strict=True):
            parts[name] = vector[..., begin : begin + count].reshape(*lead, *shape)
            begin += count
        return parts

    def join(self, parameters: Parameters) -> Tensor:
        """Returns a new vector [size] that holds a copy of `parameters`.

        Raises:
            ValueError: If a name is missing or unknown, or a shape differs.
        """
        shapes = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
        if shapes != self.shapes:
            raise ValueError(f"parameters do not fit the network: expected {self.shapes}, got {shapes}")
        return torch.cat([parameters[name].reshape(-1) for name in self.shapes])
