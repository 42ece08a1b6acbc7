"""Converts elements of Gymnasium spaces to arrays.

Elements of `Box`, `Discrete`, `MultiDiscrete` and `MultiBinary` are arrays or numbers already. An
element of a `Dict` or `Tuple`, nested to any depth, is flattened to one float32 vector in the order
of `gymnasium.spaces.utils.flatten`: boxes and binaries row by row, discrete values one-hot.
"""

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
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
    indices: Callable[[Any], Any] | None
    """Returns the indices in the vector of the one-hot entries of a discrete leaf's value.

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
        """Returns the element as a vector, float32 [size].

        Raises:
            IndexError: If a discrete value is out of the range of its space.
        """
        flat = np.zeros(self.size, np.float32)
        for path, _, begin, end, indices in self._parts:
            value = element
            for key in path:
                value = value[key]
            if indices is None:
                flat[begin:end] = np.asarray(value).reshape(-1)
            else:
                flat[indices(value)] = 1.0
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


def observation_reader(space: Space[object]) -> Callable[[Any], Any] | None:
    """Returns the function that converts each observation of `space`; `None` if none is needed.

    It flattens elements of `Dict` and `Tuple` spaces, and returns indices of `Discrete` and
    `MultiDiscrete` spaces as they are. It raises IndexError if an index is out of range.

    Raises:
        TypeError: Like `Flattener`.
    """
    match space:
        case spaces.Dict() | spaces.Tuple():
            return Flattener(space)
        case spaces.Discrete():
            return partial(check_index, int(space.start), int(space.n))
        case spaces.MultiDiscrete():
            return index_check(space)
    return None


def index_check(space: Space[object]) -> Callable[[Any], Any] | None:
    """Returns a function that returns elements [..., *shape] and raises as `index_offsets` does.

    Returns `None` unless the space is `Discrete` or `MultiDiscrete`.
    """
    match space:
        case spaces.Discrete():
            starts, sizes = np.array(space.start, np.int64), np.array(space.n, np.uint64)
        case spaces.MultiDiscrete():
            starts, sizes = space.start.astype(np.int64), space.nvec.astype(np.uint64)
        case _:
            return None

    def check(elements: Any) -> Any:
        index_offsets(starts, sizes, elements)
        return elements

    return check


def check_index(start: int, size: int, value: Any) -> int:
    """Returns an index as an integer.

    Raises:
        IndexError: If it is not in the range of `start` to `start + size - 1`.
        TypeError: If it is not an integer.
    """
    try:
        index = operator.index(value)
    except TypeError:
        if not isinstance(value, np.bool_):
            raise
        index = int(value)
    if 0 <= index - start < size:
        return index
    raise IndexError(f"{value} is not in the range of {start} to {start + size - 1}")


def index_offsets(
    starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.uint64], values: Any
) -> npt.NDArray[np.int64]:
    """Returns the differences of indices from the first ones of their ranges, [..., *shape].

    Args:
        starts: First index of each range, [*shape].
        sizes: Length of each range, [*shape].
        values: Indices, [..., *shape].

    Raises:
        IndexError: If an index is not in its range, or the shape is another one.
        TypeError: If they are not integers.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biu":
        raise TypeError(f"values of dtype {array.dtype} are no indices")
    if array.shape[array.ndim - starts.ndim :] != starts.shape:
        raise IndexError(f"the shape of the indices is {array.shape}, not {starts.shape}")
    offsets: npt.NDArray[np.int64] = array.astype(np.int64, copy=False) - starts
    # Read as an unsigned number, a negative offset is larger than any size.
    if np.count_nonzero(offsets.view(np.uint64) >= sizes):
        raise IndexError(f"offsets {offsets} are not below {sizes}")
    return offsets


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
) -> tuple[int, Callable[[Any], Any] | None]:
    """Returns the length of a leaf in the vector, and its `_Part.indices` if it begins at `begin`.

    Raises:
        TypeError: If the leaf is not a `Box`, `MultiBinary`, `Discrete` or `MultiDiscrete`.
    """
    match leaf:
        case spaces.Box() | spaces.MultiBinary():
            return math.prod(leaf.shape), None
        case spaces.Discrete():
            return int(leaf.n), partial(_one_hot_index, begin, int(leaf.start), int(leaf.n))
        case spaces.MultiDiscrete():
            sizes, starts = leaf.nvec.reshape(-1).astype(np.int64), leaf.start.reshape(-1)
            begins = begin + np.cumsum(sizes) - sizes
            return int(sizes.sum()), partial(
                _one_hot_indices, begins, starts.astype(np.int64), sizes.astype(np.uint64)
            )
    where = ".".join(map(str, path))
    raise TypeError(
        f"{type(leaf).__name__} spaces, here {where}, cannot be part of one vector: leave it out "
        "with a wrapper"
    )


def _one_hot_index(begin: int, start: int, size: int, value: Any) -> int:
    return begin - start + check_index(start, size, value)


def _one_hot_indices(
    begins: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.uint64],
    value: Any,
) -> npt.NDArray[np.int64]:
    return begins + index_offsets(starts, sizes, np.asarray(value).reshape(-1))
