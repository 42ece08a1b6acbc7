"""A tree of sums, which draws places in proportion to their values, in numpy alone."""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_WIDTH: Final = 32
"""Children of a group."""
_TOP: Final = 4096
"""Most groups that lie directly below the root."""


class SumTree:
    """Values that are not negative, one at each of `size` places, drawn in proportion.

    A level cuts the values below it into groups of `_WIDTH` and keeps 0 and the running sums of
    each group; the last sum of a group is its value on the level above. Wide groups make the tree
    flat: a million places are two levels and a root. A group is always summed anew, from left to
    right, so the sums depend on nothing but the values, however often those changed.

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
        self._stale = False

    @property
    def values(self) -> Floats:
        """A view of the values, float64 [size]; not to be written."""
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
        self._stale = True

    def set(self, places: Places, values: float | Floats) -> None:
        """Sets the values of `places` [N]; of one that comes several times, the last."""
        self._values.reshape(-1)[places] = values
        for level, sums in enumerate(self._sums):
            places = places // _WIDTH
            sums[places, 1:] = np.cumsum(self._below(level)[places], axis=1)
        self._stale = True

    def find(self, sums: Floats) -> Places:
        """Returns for each number [N] the place at which the running sum first exceeds it.

        The numbers lie in [0, total).

        The value of that place is never 0: rounding cannot lead past the last value of a group.
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
        """Returns the values that the sums of a level are of, [groups, _WIDTH]; a view."""
        return (
            self._values
            if level == 0
            else self._sums[level - 1].reshape(-1, _WIDTH, _WIDTH + 1)[:, :, -1]
        )

    def _running(self) -> Floats:
        if self._stale:
            np.cumsum(self._sums[-1][:, -1], out=self._root[1:])
            self._stale = False
        return self._root


def _groups(count: int) -> int:
    return -(-count // _WIDTH)
