"""Curves on one common grid of buckets whose widths are powers of two.

The size of a chart does not depend on the number of points. Positions are integers: counts on
env_step, update and episode, milliseconds on wall and relative. A bucket is `unit * 2**level`
wide and starts at a multiple of its width, so buckets of a level are unions of buckets of the level
below and can be computed from stored rollups exactly (docs/decisions/0020-grid-of-curves.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from app.metrics.blocks import Floats, Ints

NONE: Final = np.nan
"""Marks a bucket without a finite value; the API sends `null`."""
Axis = Literal["env_step", "update", "episode", "wall", "relative"]
MAX_POSITION: Final = 2**53
"""Largest absolute position; positions of queries beyond it are read as this one."""
_WIDEST: Final = 2 * MAX_POSITION
_PER_SECOND: Final = 1_000


class Bound(NamedTuple):
    """An end of a range of positions, relative to an origin."""

    position: int
    origin: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """Buckets of equal width that start at multiples of the width.

    Attributes:
        first: Number of the first bucket: it starts at `first * width`.
        width: Positions per bucket.
        buckets: Number of buckets.
        unit: Width of a bucket of level 0.
    """

    first: int
    width: int
    buckets: int
    unit: int = 1

    @classmethod
    def cover(
        cls, lows: Sequence[Bound], highs: Sequence[Bound], buckets: int, unit: int = 1
    ) -> "Grid":
        """Returns the grid of the narrowest buckets of which `buckets` cover all bounds.

        It has more than half of `buckets`, unless the range has fewer units.

        Args:
            lows: Lower ends of ranges, inclusive.
            highs: Upper ends, inclusive; none is below its lower end.
            buckets: Most buckets; a range on both sides of 0 takes two or three at least.
            unit: Width of a bucket of level 0.
        """
        low, high = _to_arrays(lows), _to_arrays(highs)
        width = unit
        while True:
            first = int((low[0] // width - low[1] // width).min())
            last = int((high[0] // width - high[1] // width).max())
            if last - first < buckets or width > _WIDEST:
                return cls(first, width, last - first + 1, unit)
            width *= 2

    @property
    def start(self) -> int:
        """Lowest position of the first bucket."""
        return self.first * self.width

    @property
    def end(self) -> int:
        """One past the highest position of the last bucket."""
        return (self.first + self.buckets) * self.width

    @property
    def centres(self) -> Floats:
        """Centre of each bucket: half-way between the lowest and highest multiple of the unit."""
        numbers = np.arange(self.first, self.first + self.buckets)
        return np.asarray(numbers * float(self.width) + (self.width - self.unit) / 2, np.float64)

    def index(self, x: Ints, origin: int = 0) -> Ints:
        """Returns the bucket of each position, below 0 or from `buckets` on where it is outside.

        Args:
            x: Positions.
            origin: Position that counts as 0. Its bucket counts, not the position itself: a curve
                of relative times is moved by whole buckets, so it has the buckets of its wall time.
        """
        numbers: Ints = x // self.width
        return numbers - (origin // self.width + self.first)


def to_position(axis: Axis, x: float, *, upwards: bool = False) -> int:
    """Returns the position of a coordinate of a query: seconds on wall and relative, else counts.

    `upwards` rounds up, the default rounds down.
    """
    scaled = x * _PER_SECOND if axis in {"wall", "relative"} else x
    clipped = min(max(scaled, -MAX_POSITION), MAX_POSITION)
    if axis in {"wall", "relative"}:
        return round(clipped)
    return int(-(-clipped // 1) if upwards else clipped // 1)


def to_coordinates(axis: Axis, positions: Floats) -> Floats:
    """Returns the coordinates of positions: seconds on wall and relative, else counts."""
    return positions / _PER_SECOND if axis in {"wall", "relative"} else positions


def round_to_milliseconds(wall: Floats) -> Ints:
    """Returns wall times in seconds as positions."""
    return np.rint(wall * _PER_SECOND).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Buckets:
    """One curve on a grid.

    Aggregates are over finite values, NaN where a bucket holds none; `n` counts all points.
    """

    min: Floats
    max: Floats
    mean: Floats
    last: Floats
    n: Ints
    nonfinite: Ints

    @property
    def points(self) -> int:
        """Number of all points in range."""
        return int(self.n.sum())


def downsample(x: Ints, value: Floats, grid: Grid, origin: int = 0) -> Buckets:
    """Returns the curve on the grid.

    Args:
        x: Position of each point, in the order (fence, seq); any values, in any order.
        value: Value of each point; may be NaN or infinite.
        grid: Buckets; points outside are left out.
        origin: Position that counts as 0 (`Grid.index`).

    Returns:
        Per bucket the smallest, largest, mean and last finite value, and the counts of all and of
            non-finite points.
    """
    index = grid.index(x, origin)
    inside = (index >= 0) & (index < grid.buckets)
    index, values = index[inside], value[inside]
    n = np.bincount(index, minlength=grid.buckets)
    finite = np.isfinite(values)
    index, values = index[finite], values[finite]
    nonfinite = n - np.bincount(index, minlength=grid.buckets)
    if len(index) > 1 and bool(np.any(index[1:] < index[:-1])):
        order = np.argsort(index, kind="stable")
        index, values = index[order], values[order]
    return Buckets(*_reduce(index, values, grid.buckets), n, nonfinite)


def _to_arrays(bounds: Sequence[Bound]) -> tuple[Ints, Ints]:
    columns = np.array(bounds, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _reduce(index: Ints, values: Floats, buckets: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Reduces values that are sorted by bucket; returns min, max, mean and last."""
    columns = tuple(np.full(buckets, NONE) for _ in range(4))
    if not len(index):
        return columns  # type: ignore[return-value]
    firsts = np.flatnonzero(np.concatenate(([True], index[1:] != index[:-1])))
    filled = index[firsts]
    low, high, mean, last = columns
    low[filled] = np.minimum.reduceat(values, firsts)
    high[filled] = np.maximum.reduceat(values, firsts)
    mean[filled] = np.clip(_means(values, firsts), low[filled], high[filled])
    last[filled] = values[np.concatenate((firsts[1:], [len(values)])) - 1]
    return low, high, mean, last


def _means(values: Floats, firsts: Ints) -> Floats:
    counts = np.diff(np.concatenate((firsts, [len(values)])))
    with np.errstate(over="ignore", invalid="ignore"):
        means: Floats = np.add.reduceat(values, firsts) / counts
    overflowed = ~np.isfinite(means)
    if bool(overflowed.any()):
        # A sum of shares cannot overflow, but shares of denormal numbers are rounded to 0.
        shares = np.add.reduceat(values / np.repeat(counts, counts), firsts)
        means[overflowed] = shares[overflowed]
    return means
