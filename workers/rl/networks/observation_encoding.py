"""Encoding of observations of a space as input vectors of a network."""

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import Space, spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor

from workers.core.errors import DefinitionError
from workers.core.types import Array

_MAX_BYTE: Final = 255


@dataclass(frozen=True, slots=True)
class Encoding:
    """Converts a batch of observations to a batch of float32 vectors.

    Works on tensors of any device, in compiled code and under `vmap`.
    """

    size: int
    """Length of the vector of one observation."""
    shape: tuple[int, ...]
    """Shape of one observation as the agent receives it; composites are flattened."""
    dtype: np.dtype[Any]
    """Dtype in which memories store observations."""
    first: int | None = None
    """Smallest value of a discrete space, whose values become one-hot vectors.

    `None` for other spaces.
    """
    scale: float = 1.0
    """Factor by which arrays are multiplied: for bytes 1 / upper bound, else 1."""
    components: tuple[tuple[int, int], ...] | None = None
    """Smallest value and number of values of each component of a multi-discrete space.

    The one-hot vectors of the components are concatenated.
    """
    segments: tuple[tuple[int, float], ...] | None = None
    """Length and factor of each segment of the flat vector, whose factors differ."""

    def __call__(self, observation: Tensor) -> Tensor:
        """Returns float32 [N, size] of observations [N, *shape]."""
        device = observation.device
        if self.first is not None:
            return (
                observation.unsqueeze(-1)
                == torch.arange(self.first, self.first + self.size, device=device)
            ).float()
        flat = (
            observation
            if len(self.shape) == 1
            else observation.reshape(observation.shape[0], math.prod(self.shape))
        )
        if self.components is not None:
            columns = zip(torch.split(flat, 1, 1), self.components, strict=True)
            return torch.cat(
                [
                    column == torch.arange(first, first + count, device=device)
                    for column, (first, count) in columns
                ],
                1,
            ).float()
        if self.segments is not None:
            return _floats(flat) * torch.cat(
                [torch.full((length,), factor, device=device) for length, factor in self.segments]
            )
        return _floats(flat) if self.scale == 1.0 else _floats(flat) * self.scale

    def forward_numpy(self, observation: Array) -> npt.NDArray[np.float32]:
        """Returns float32 [..., size] of observations [..., *shape], in numpy.

        The result may be `observation` itself or a view of it.
        """
        if self.first is not None:
            return np.equal(
                observation[..., None], np.arange(self.first, self.first + self.size)
            ).astype(np.float32)
        front = observation.shape[: observation.ndim - len(self.shape)]
        flat = (
            observation
            if len(self.shape) == 1
            else observation.reshape(*front, math.prod(self.shape))
        )
        if self.components is not None:
            places, values = _one_hot(self.components)
            return np.equal(flat.take(places, -1), values).astype(np.float32)
        floats: npt.NDArray[np.float32] = (
            flat if flat.dtype == np.float32 else flat.astype(np.float32)
        )
        if self.segments is not None:
            return floats * _factors(self.segments)
        return floats if self.scale == 1.0 else floats * np.float32(self.scale)


def encoding_of(space: Space[object]) -> Encoding:
    """Returns the encoding of an observation space.

    Boxes and binaries are flattened; discrete values, and each component of multi-discrete ones,
    become one-hot vectors. Dicts and tuples reach an agent as one flat float32 vector in the order
    of `gymnasium.spaces.utils.flatten`, images in them flattened too. Numbers of uint8 boxes are
    divided by their upper bounds.

    Raises:
        DefinitionError: If the built-in networks cannot read the space.
    """
    match space:
        case spaces.Discrete():
            return Encoding(
                size=int(space.n), shape=(), dtype=np.dtype(np.int64), first=int(space.start)
            )
        case spaces.MultiDiscrete():
            components = tuple(
                zip(space.start.reshape(-1).tolist(), space.nvec.reshape(-1).tolist(), strict=True)
            )
            size = sum(count for _, count in components)
            return Encoding(size, tuple(space.shape), np.dtype(np.int64), components=components)
        case spaces.Box() | spaces.MultiBinary():
            shape = tuple(space.shape)
            floating = np.issubdtype(space.dtype, np.floating)
            dtype = np.dtype(np.float32) if floating else np.dtype(space.dtype)
            factors = _factors_of(space)
            _check_holds(space, factors.size)
            return Encoding(factors.size, shape, dtype, **_scaling(factors))
        case spaces.Dict() | spaces.Tuple():
            factors = _factors_of(space)
            _check_holds(space, factors.size)
            return Encoding(
                factors.size, (factors.size,), np.dtype(np.float32), **_scaling(factors)
            )
    raise _unreadable(space)


def with_byte_bounds(space: Space[Any]) -> Space[Any]:
    """Returns a space whose uint8 boxes have the bounds 0 and 255.

    For such a space, `encoding_of` divides all bytes by 255, as networks of snapshots before
    format 4 do.
    """
    match space:
        case spaces.Box() if space.dtype == np.uint8:
            return spaces.Box(0, _MAX_BYTE, space.shape, np.uint8)
        case spaces.Dict():
            # An ordered dictionary keeps the order of the keys.
            return spaces.Dict(
                OrderedDict((key, with_byte_bounds(part)) for key, part in space.spaces.items())
            )
        case spaces.Tuple():
            return spaces.Tuple([with_byte_bounds(part) for part in space.spaces])
    return space


def _scaling(factors: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Returns `scale` or `segments` of an encoding with these factors."""
    starts = np.flatnonzero(np.diff(factors, prepend=np.nan))
    if len(starts) == 1:
        return {"scale": float(factors[0])}
    lengths = np.diff(starts, append=len(factors))
    return {"segments": tuple(zip(lengths.tolist(), factors[starts].tolist(), strict=True))}


def _factors_of(space: Space[object]) -> npt.NDArray[np.float64]:
    """Returns the factors of the entries of a space's flat vector."""
    match space:
        case spaces.Dict():
            return _concatenate(space.spaces.values())
        case spaces.Tuple():
            return _concatenate(space.spaces)
        case spaces.Box() if space.dtype == np.uint8:
            return 1 / np.maximum(space.high, 1, dtype=np.float64).reshape(-1)
        case spaces.Box() | spaces.Discrete() | spaces.MultiBinary() | spaces.MultiDiscrete():
            return np.ones(flatdim(space))
    raise _unreadable(space)


def _concatenate(parts: Iterable[Space[object]]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.empty(0), *map(_factors_of, parts)])


@lru_cache
def _one_hot(components: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """Returns for each entry of the one-hot vectors the index of its component, and its value."""
    places = np.repeat(np.arange(len(components)), [count for _, count in components])
    return places, np.concatenate([np.arange(first, first + count) for first, count in components])


@lru_cache
def _factors(segments: tuple[tuple[int, float], ...]) -> npt.NDArray[np.float32]:
    return np.repeat(
        np.array([factor for _, factor in segments], np.float32), [length for length, _ in segments]
    )


def _check_holds(space: Space[object], size: int) -> None:
    if not size:
        raise DefinitionError(
            f"env.id: its observations, {space}, hold no numbers: choose an environment "
            "that shows something"
        )


def _unreadable(space: Space[object]) -> DefinitionError:
    return DefinitionError(
        "the built-in agents read Box, Discrete, MultiBinary and MultiDiscrete observations, and "
        "Dicts and Tuples of them, "
        f"not {space}: wrap the environment"
    )


def _floats(values: Tensor) -> Tensor:
    """Returns the values in torch's default dtype, which is float32 unless it was changed."""
    return values.to(torch.get_default_dtype())
