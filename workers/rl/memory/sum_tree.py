"""A sum tree in NumPy, to draw places with probabilities proportional to their values."""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_WIDTH: Final = 32
"""Number of values in a group."""
_TOP: Final = 4096
"""Most groups on the level directly below the root."""


class SumTree:
    """Stores a value >= 0 for each of `size` places and finds places by cumulative sum.

    A level divides the values below it into groups of `_WIDTH` and stores 0 and the cumulative sums
    of each group; the last sum of a group is its value on the level above. Wide groups keep the
    tree shallow: a million places need two levels and a root. When a value changes, its group is
    summed again from left to right, so the sums depend on the present values only, without rounding
    errors of earlier changes.

    Args:
        size: Number of places.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        groups = [_groups(size)]
        while groups[-1] > _TOP:
            groups.append(_groups(groups[-1]))
        inner = [above * _WIDTH for above in groups[1:]]
        self._values = np.zeros((groups[0], _WIDTH))
        self._sums = [np.zeros((count, _WIDTH + 1)) for count in (*inner, groups[-1])]
        self._root = np.zeros(groups[-1] + 1)
        self._is_stale = False

    @property
    def values(self) -> Floats:
        """A read-only view of the values, float64 [size]; change values with `fill` and `set`."""
        return self._values.reshape(-1)[: self._size]

    @property
    def total(self) -> float:
        """Sum of all values."""
        return float(self._running()[-1])

    def fill(self, begin: int, end: int, values: float | Floats) -> None:
        """Sets the values of the places [begin, end)."""
        self._values.reshape(-1)[begin:end] = values
        for level in range(len(self._sums)):
            begin, end = begin // _WIDTH, (end - 1) // _WIDTH + 1
            np.cumsum(self._below(level)[begin:end], axis=1, out=self._sums[level][begin:end, 1:])
        self._is_stale = True

    def set(self, places: Places, values: float | Floats) -> None:
        """Sets the values of `places` [N]; the last value counts where a place is repeated."""
        self._values.reshape(-1)[places] = values
        for level, sums in enumerate(self._sums):
            places = places // _WIDTH
            sums[places, 1:] = np.cumsum(self._below(level)[places], axis=1)
        self._is_stale = True

    def find(self, sums: Floats) -> Places:
        """Returns for each of `sums` [N] the first place whose cumulative sum exceeds it.

        `sums` are in [0, total).

        Values at the returned places are never 0, in spite of rounding: the remainder in a group is
        limited to less than the sum of the group.
        """
        root = self._running()
        rest = np.minimum(sums, np.nextafter(root[-1], 0))
        place: Places = root.searchsorted(rest, side="right") - 1
        rest -= root[place]
        rows = np.arange(len(place))
        for level in reversed(self._sums):
            running = level.take(place, axis=0)
            np.minimum(rest, np.nextafter(running[:, -1], 0), out=rest)
            child = (running[:, 1:] > rest[:, np.newaxis]).argmax(1)
            rest -= running[rows, child]
            place = place * _WIDTH + child
        return place

    def _below(self, level: int) -> Floats:
        """Returns a view of the values that a level sums up, [groups, _WIDTH]."""
        return (
            self._values
            if level == 0
            else self._sums[level - 1].reshape(-1, _WIDTH, _WIDTH + 1)[:, :, -1]
        )

    def _running(self) -> Floats:
        if self._is_stale:
            np.cumsum(self._sums[-1][:, -1], out=self._root[1:])
            self._is_stale = False
        return self._root


def _groups(count: int) -> int:
    return -(-count // _WIDTH)
