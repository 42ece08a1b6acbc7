"""Converts elements of Gymnasium spaces to arrays.

Elements of `Box`, `Discrete`, `MultiDiscrete` and `MultiBinary` are arrays or numbers already. An
element of a `Dict` or `Tuple`, nested to any depth, is flattened to one float32 vector in the order
of `gymnasium.spaces.utils.flatten`: boxes and binaries row by row, discrete values one-hot.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces

Layout = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of one element."""


class _Part(NamedTuple):
    """A leaf of a nested space."""

    path: tuple[str | int, ...]
    space: Space[object]
    begin: int
    end: int
    ones: npt.NDArray[np.int64] | None
    """For n discrete values, int64 [n]: index in the vector of the one-hot entry for the value 0.

    `None` for boxes and binaries.
    """


class Flattener:
    """Flattens elements of a `Dict` or `Tuple` space to vectors.

    Args:
        space: Space whose leaves are `Box`, `MultiBinary`, `Discrete` or `MultiDiscrete` spaces.

    Raises:
        TypeError: If a leaf is of another kind, or the space has no leaves.
    """

    def __init__(self, space: spaces.Dict[object] | spaces.Tuple[object]) -> None:
        self._parts = tuple(_parts(space))
        if not self._parts:
            raise TypeError(
                f"{type(space).__name__} space without parts: there is nothing to observe"
            )
        self.size = self._parts[-1].end
        """Length of the vector."""

    def __call__(self, element: Any) -> npt.NDArray[np.float32]:
        """Returns the element as a vector, float32 [size]."""
        flat = np.zeros(self.size, np.float32)
        for path, _, begin, end, ones in self._parts:
            value = element
            for key in path:
                value = value[key]
            if ones is None:
                flat[begin:end] = np.asarray(value).reshape(-1)
            else:
                flat[ones + np.asarray(value).reshape(-1)] = 1.0
        return flat

    def span(self, key: str | int) -> slice:
        """Returns the slice of the vector that holds the outermost part `key`."""
        mine = [part for part in self._parts if part.path[0] == key]
        return slice(mine[0].begin, mine[-1].end)

    def space(self) -> spaces.Box:
        """Returns the `Box` of the vectors, with the bounds of boxes and [0, 1] elsewhere."""
        low, high = np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        for _, space, begin, end, _ in self._parts:
            if isinstance(space, spaces.Box):
                low[begin:end], high[begin:end] = space.low.reshape(-1), space.high.reshape(-1)
        return spaces.Box(low, high, dtype=np.float32)


def array_layout(space: Space[object]) -> Layout:
    """Returns the shape and dtype of one stored observation.

    They are those of the space, or of the flattened vector of a `Dict` or `Tuple`.

    Raises:
        TypeError: If the elements of the space are no arrays, or are empty arrays.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        layout: Layout = (Flattener(space).size,), np.dtype(np.float32)
    elif space.shape is None or space.dtype is None:
        raise TypeError(
            f"{type(space).__name__} spaces cannot be stored as one array: turn them into a Box "
            "with a wrapper"
        )
    else:
        layout = space.shape, np.dtype(space.dtype)
    if math.prod(layout[0]) == 0:
        raise TypeError(
            f"the space {space} holds no number (shape {list(layout[0])}): give the environment "
            "one of at least one number"
        )
    return layout


def check_is_array(space: Space[object], name: str) -> None:
    """Raises if observations of `space` are not arrays unless they are flattened.

    Args:
        space: Observation space.
        name: Name of the parameter that the environment was passed as, for the error message.

    Raises:
        TypeError: If `space` is a `Dict` or `Tuple`, or its elements are no arrays.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        message = f"{name}: observations of a {type(space).__name__} space are not flattened here"
        raise TypeError(
            f"{message}: wrap each environment in gymnasium.wrappers.FlattenObservation"
        )
    array_layout(space)


def action_layout(space: Space[object]) -> Layout:
    """Returns the shape and dtype of one stored action.

    The dtype is int64 for `Discrete`, `MultiDiscrete` and `MultiBinary`, else that of the space.

    Raises:
        TypeError: If the elements of the space are no arrays.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        raise TypeError(
            f"{type(space).__name__} spaces of actions cannot be stored as one array: turn them "
            "into a Box or a MultiDiscrete"
        )
    shape, dtype = array_layout(space)
    return shape, np.dtype(np.int64) if isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    ) else dtype


def _parts(space: Space[object]) -> Iterator[_Part]:
    begin = 0
    for path, leaf in _leaves(space, ()):
        size, ones = _leaf_span(leaf, begin, path)
        yield _Part(path, leaf, begin, begin + size, ones)
        begin += size


def _leaves(
    space: Space[object], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Space[object]]]:
    match space:
        case spaces.Dict():
            for key, inner in space.spaces.items():
                yield from _leaves(inner, (*path, key))
        case spaces.Tuple():
            for index, inner in enumerate(space.spaces):
                yield from _leaves(inner, (*path, index))
        case _:
            yield path, space


def _leaf_span(
    leaf: Space[object], begin: int, path: tuple[str | int, ...]
) -> tuple[int, npt.NDArray[np.int64] | None]:
    """Returns the length of a leaf in the vector, and its `_Part.ones` if it begins at `begin`.

    Raises:
        TypeError: If the leaf is not a `Box`, `MultiBinary`, `Discrete` or `MultiDiscrete`.
    """
    match leaf:
        case spaces.Box() | spaces.MultiBinary():
            return math.prod(leaf.shape), None
        case spaces.Discrete():
            return int(leaf.n), np.array([begin - int(leaf.start)], np.int64)
        case spaces.MultiDiscrete():
            sizes, starts = leaf.nvec.reshape(-1), np.asarray(leaf.start).reshape(-1)
            return int(sizes.sum()), (begin + np.cumsum(sizes) - sizes - starts).astype(np.int64)
    where = ".".join(map(str, path))
    raise TypeError(
        f"{type(leaf).__name__} spaces, here {where}, cannot be part of one vector: leave it out "
        "with a wrapper"
    )
