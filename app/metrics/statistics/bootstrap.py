"""Stratified bootstrap: seeds are resampled within each environment."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from app.metrics.columns import Floats, Ints
from app.metrics.statistics.scores import Scores

GENERATOR: Final = "numpy.random.PCG64"
"""Name of the bit generator that a stored RNG seed belongs to."""
RESAMPLES: Final = 2_000
"""Number of resamples of a live answer."""
_CELLS: Final = 1_000_000
"""Scores that are resampled at a time."""


def draw_indices(
    scores: Scores, resamples: int, rng: np.random.Generator, *, rows: int | None = None
) -> Iterator[Ints]:
    """Draws resamples in blocks.

    The draws depend on the state of `rng` and the counts of the environments only, not on how they
    are divided into blocks.

    Args:
        scores: What is resampled.
        resamples: Number of resamples.
        rng: Generator of the draws.
        rows: Resamples per block; by default as many as fit in about 8 MiB.

    Yields:
        Indices into `scores.values` of shape (rows, scores): each environment's places hold scores
        of the same environment, drawn with replacement.
    """
    counts = np.repeat(scores.counts, scores.counts)
    starts = np.repeat(scores.starts, scores.counts)
    rows = rows or choose_rows(scores)
    for first in range(0, resamples, rows):
        draws = rng.random((min(rows, resamples - first), len(scores.values)))
        yield starts + (draws * counts).astype(np.int64)


def choose_rows(*scores: Scores) -> int:
    """Returns how many resamples of the largest of some score matrices are one block."""
    return max(1, _CELLS // max(len(one.values) for one in scores))


def count_draws(indices: Ints) -> Ints:
    """Returns how often each score was drawn.

    Args:
        indices: Shape (rows, scores).

    Returns:
        Counts of shape (rows, scores); each row sums to the number of scores.
    """
    rows, width = indices.shape
    places = indices + np.arange(rows)[:, None] * width
    return np.bincount(places.reshape(-1), minlength=rows * width).reshape(rows, width)


def resample(
    scores: Scores,
    statistic: Callable[[Floats], Floats],
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Returns a statistic of every resample.

    Args:
        scores: What is resampled.
        statistic: Maps values of shape (rows, scores) to an array of shape (rows, ...).
        resamples: Number of resamples.
        rng: Generator of the draws.

    Returns:
        Shape (resamples, ...).
    """
    return np.concatenate(
        [statistic(scores.values[indices]) for indices in draw_indices(scores, resamples, rng)]
    )


def compute_interval(estimates: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Returns the ends of the percentile interval of estimates of shape (resamples, ...)."""
    tail = (1 - level) / 2
    low, high = np.quantile(estimates, (tail, 1 - tail), axis=0)
    return low, high


def trim_counts(values: Floats, counts: Ints) -> Floats:
    """Returns the interquartile mean of every resample of every column.

    Equals sorting each resample, in a fraction of the time: a column is sorted once, and the
    running sum of how often each of its values was drawn says which of them are in the middle.

    Args:
        values: Shape (scores, columns), finite.
        counts: Shape (resamples, scores): how often each score was drawn.

    Returns:
        Shape (resamples, columns).
    """
    size, columns = values.shape
    cut = size // 4
    found = np.empty((len(counts), columns))
    small = size <= np.iinfo(np.int16).max
    drawn = np.ascontiguousarray(counts.T, dtype=np.int16 if small else np.int64)
    for column in range(columns):
        order = np.argsort(values[:, column])
        ordered = values[order, column]
        reached = drawn[order]
        for row in range(1, size):  # several times as fast as a cumulative sum along this axis
            np.add(reached[row], reached[row - 1], out=reached[row])
        np.clip(reached, cut, size - cut, out=reached)
        # How often a value counts is a difference of `reached`, so the sum of values times counts
        # is one of differences of values times `reached`.
        below = np.diff(ordered) @ (reached[:-1].astype(np.float64) - cut)
        found[:, column] = ordered[-1] - below / (size - 2 * cut)
    return found
