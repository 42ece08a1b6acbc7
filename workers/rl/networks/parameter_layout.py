"""Parameters as a dictionary of tensors, and as one flat vector for optimisers."""

import itertools
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from workers.core.types import Array

Parameters = Mapping[str, Tensor]
"""Tensors by name, such as `q.0.weight`. Functions of parameters never write to them."""


class Layout:
    """Names and shapes of the tensors that one flat vector holds, in order.

    With one vector the number of operations in an optimiser step does not depend on the depth of a
    network, the gradient is one tensor, copying a network is one assignment, and the parameters of
    several seeds are one matrix.

    Args:
        shapes: Shape of each tensor by name.
    """

    __slots__ = ("_counts", "_items", "_places", "shapes", "size")

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self._items = tuple(self.shapes.items())
        self._counts = [math.prod(shape) for shape in self.shapes.values()]
        ends = list(itertools.accumulate(self._counts))
        self._places = [
            (name, shape, slice(end - count, end))
            for (name, shape), count, end in zip(self._items, self._counts, ends, strict=True)
        ]
        self.size = sum(self._counts)

    def describe(self) -> str:
        """Returns the layout as text, for the key of the cache of compiled code.

        See `workers.acceleration.library_cache`.
        """
        return repr(self.shapes)

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """Returns the tensors as views of `vector` [size]."""
        parts = torch.split_with_sizes(vector, self._counts)
        return {
            name: part.view(shape) for (name, shape), part in zip(self._items, parts, strict=True)
        }

    def split_array(self, vector: Array) -> dict[str, Array]:
        """Returns the arrays by name as views of `vector` [..., size]."""
        if vector.ndim == 1:
            # Twice as fast as the general form; a single agent splits its vector after each update.
            return {name: vector[place].reshape(shape) for name, shape, place in self._places}
        lead = vector.shape[:-1]
        return {
            name: vector[..., place].reshape(*lead, *shape) for name, shape, place in self._places
        }

    def join(self, parameters: Parameters) -> Tensor:
        """Returns a new vector [size] that holds a copy of `parameters`.

        Raises:
            ValueError: If a name is missing or unknown, or a shape differs.
        """
        shapes = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
        if shapes != self.shapes:
            raise ValueError(
                f"parameters do not fit the network: expected {self.shapes}, got {shapes}"
            )
        return torch.cat([parameters[name].reshape(-1) for name in self.shapes])
