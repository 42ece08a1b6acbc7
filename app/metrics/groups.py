"""Statistics over the runs of a group, bucket by bucket, over all their data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.metrics.columns import Floats, Ints

RESAMPLES: Final = 2_000
"""Number of bootstrap resamples of an interval of a live curve."""
MIN_RUNS: Final = 3
"""Number of runs below which no interval is computed."""
_SEED: Final = 20_261_121
_LEVELS: Final = (0.025, 0.975)
_CHUNK: Final = 256


@dataclass(frozen=True, slots=True)
class GroupBuckets:
    """Statistics per bucket, over the mean of each run with data in it.

    NaN where no run has data.
    """

    mean: Floats
    median: Floats
    stdev: Floats
    stderr: Floats
    min: Floats
    max: Floats
    low: Floats
    high: Floats
    n: Ints


def summarise(means: Floats, *, with_interval: bool = True) -> GroupBuckets:
    """Returns the statistics of a group.

    Args:
        means: Shape (runs, buckets): each run's mean, NaN where it has no finite value.
        with_interval: Whether the bootstrap interval is computed, which takes most of the time.

    Returns:
        Mean, median, sample standard deviation and standard error of the mean (NaN for one run),
            extremes, the 95 % percentile
        bootstrap interval of the mean (NaN with fewer than three runs), and the number of runs with
        data. The same input gives the same interval.
    """
    present = ~np.isnan(means)
    n = present.sum(axis=0)
    mean, median, stdev, stderr, low, high, least, most = np.full((8, means.shape[1]), np.nan)
    result = GroupBuckets(mean, median, stdev, stderr, least, most, low, high, n)
    ordered = np.sort(means, axis=0)  # NaN is last, so the first n values are the runs
    for count in np.unique(n[n > 0]).tolist():
        columns = np.flatnonzero(n == count)
        _fill(result, columns, ordered[:count, columns], with_interval=with_interval)
    return result


def carry_forward(means: Floats, ends: Sequence[tuple[int, float] | None]) -> tuple[Floats, Ints]:
    """Carries the last value of finished runs forward.

    The mean of a group then does not fall when a good run stops early.

    Args:
        means: Shape (runs, buckets): each run's mean, NaN where it has no finite value.
        ends: Per run the bucket of its last finite point (below 0 if that lies before the grid) and
            its value; `None` for a run that is not over.

    Returns:
        The means with the values carried, and per bucket the number of runs whose value is carried.
            Values are carried into buckets after the run's end in which another run has data, so
            never beyond the last measured point of the group.
    """
    if not any(end is not None for end in ends):
        return means, np.zeros(means.shape[1], np.int64)
    last = np.array([means.shape[1] if end is None else end[0] for end in ends])
    value = np.array([np.nan if end is None else end[1] for end in ends])
    measured = ~np.isnan(means)
    carried = (
        (np.arange(means.shape[1]) > last[:, None])
        & measured.any(axis=0)
        & ~np.isnan(value)[:, None]
    )
    return np.where(carried, value[:, None], means), carried.sum(axis=0)


def _fill(result: GroupBuckets, columns: Ints, values: Floats, *, with_interval: bool) -> None:
    """Writes the statistics of the buckets `columns`, for which all runs have `values`.

    `values` has the shape (runs, columns).
    """
    count = len(values)
    low, high = values[0], values[-1]
    mean = np.clip((values / count).sum(axis=0), low, high)
    result.mean[columns], result.min[columns], result.max[columns] = mean, low, high
    result.median[columns] = np.median(values, axis=0) if count > 1 else low
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.std(values, axis=0, ddof=1) if count > 1 else np.full(len(columns), np.nan)
    result.stdev[columns] = np.where(np.isfinite(spread), spread, np.nan)
    result.stderr[columns] = result.stdev[columns] / np.sqrt(count)
    if with_interval and count >= MIN_RUNS:
        result.low[columns], result.high[columns] = _interval(values)


def _interval(values: Floats) -> tuple[Floats, Floats]:
    count, width = values.shape
    weights = (
        np.random.default_rng([_SEED, count]).multinomial(
            count, np.full(count, 1 / count), size=RESAMPLES
        )
        / count
    )
    parts = [
        _percentiles(weights @ values[:, first : first + _CHUNK])
        for first in range(0, width, _CHUNK)
    ]
    low, high = np.concatenate(parts, axis=1)
    return np.clip(low, values[0], values[-1]), np.clip(high, values[0], values[-1])


def _percentiles(means: Floats) -> Floats:
    return np.quantile(means, _LEVELS, axis=0)
