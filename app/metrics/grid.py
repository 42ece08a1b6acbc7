"""Curves on one common grid of buckets.

The size of a chart does not depend on the number of points.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.metrics.blocks import Floats, Ints

NONE: Final = np.nan
"""Marks a bucket without a finite value; the API sends `null`."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Buckets of equal width over [start, end]; the last one includes `end`.

    If start and end are equal there is a single bucket.
    """

    start: float
    end: float
    buckets: int

    @classmethod
    def from_range(cls, start: float, end: float, buckets: int) -> "Grid":
        """Returns the grid of a range, with a single bucket where start and end are the same."""
        return cls(start, end, buckets if end > start else 1)

    @property
    def centres(self) -> Floats:
        """Centre of each bucket."""
        width = (self.end - self.start) / self.buckets
        return np.asarray(self.start + width * (np.arange(self.buckets) + 0.5), np.float64)

    def index(self, x: Floats) -> Ints:
        """Returns the bucket of each x, which must be in range."""
        if self.end <= self.start:
            return np.zeros(len(x), np.int64)
        position = np.floor((x - self.start) / (self.end - self.start) * self.buckets)
        return np.clip(position, 0, self.buckets - 1).astype(np.int64)


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


def downsample(x: Floats, value: Floats, grid: Grid) -> Buckets:
    """Returns the curve on the grid.

    Args:
        x: Position of each point, in the order (fence, seq); any values, in any order.
        value: Value of each point; may be NaN or infinite.
        grid: Range and buckets; points outside are left out.

    Returns:
        Per bucket the smallest, largest, mean and last finite value, and the counts of all and of
            non-finite points.
    """
    inside = (x >= grid.start) & (x <= grid.end)
    index, values = grid.index(x[inside]), value[inside]
    n = np.bincount(index, minlength=grid.buckets)
    finite = np.isfinite(values)
    index, values = index[finite], values[finite]
    nonfinite = n - np.bincount(index, minlength=grid.buckets)
    if len(index) > 1 and bool(np.any(index[1:] < index[:-1])):
        order = np.argsort(index, kind="stable")
        index, values = index[order], values[order]
    return Buckets(*_reduce(index, values, grid.buckets), n, nonfinite)


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
    if bool(np.all(np.isfinite(means))):
        return means
    return np.add.reduceat(values / np.repeat(counts, counts), firsts)
