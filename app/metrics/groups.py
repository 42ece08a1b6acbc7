"""Statistics over the runs of a group, bucket by bucket, over all their data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.metrics.columns import Floats, Ints
from app.metrics.statistics.bootstrap import count_draws, trim_counts
from app.metrics.statistics.scores import MIN_SEEDS

RESAMPLES: Final = 2_000
"""Number of bootstrap resamples of an interval of a live curve."""
_SEED: Final = 20_261_121
_LEVELS: Final = (0.025, 0.975)
_CHUNK: Final = 256
_COLUMNS: Final = (
    "mean",
    "median",
    "stdev",
    "stderr",
    "min",
    "max",
    "low",
    "high",
    "iqm",
    "iqm_low",
    "iqm_high",
)


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
    iqm: Floats
    iqm_low: Floats
    iqm_high: Floats
    n: Ints


@dataclass(frozen=True, slots=True)
class WantedIntervals:
    """Which bootstrap intervals are computed; they take most of the time."""

    of_mean: bool = True
    of_iqm: bool = False


def summarise(
    means: Floats,
    wanted: WantedIntervals = WantedIntervals(),
    environments: Sequence[str] | None = None,
) -> GroupBuckets:
    """Returns the statistics of a group.

    Args:
        means: Shape (runs, buckets): each run's mean, NaN where it has no finite value.
        wanted: Intervals that are computed; the columns of others are NaN.
        environments: Environment of each run; `None` if all are of one.

    Returns:
        Mean, median, sample standard deviation and standard error of the mean (NaN for one run),
            extremes, interquartile mean (a quarter of the runs, rounded down, left out at each
            end), the 95 % percentile bootstrap intervals of mean and interquartile mean, and the
            number of runs with data. Intervals resample runs within each environment, and are NaN
            where one has fewer than three runs. The same input gives the same interval.
    """
    present = ~np.isnan(means)
    n = present.sum(axis=0)
    empty = np.full((11, means.shape[1]), np.nan)
    result = GroupBuckets(**dict(zip(_COLUMNS, empty, strict=True)), n=n)
    ordered = np.sort(means, axis=0)  # NaN is last, so the first n values are the runs
    for count in np.unique(n[n > 0]).tolist():
        chosen = np.flatnonzero(n == count)
        _fill(result, chosen, ordered[:count, chosen])
    if len(means) and (wanted.of_mean or wanted.of_iqm):
        _fill_intervals(result, means, wanted, environments)
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


def _fill(result: GroupBuckets, columns: Ints, values: Floats) -> None:
    """Writes the statistics of the buckets `columns`, for which all runs have `values`.

    `values` has the shape (runs, columns) and ascends along the runs.
    """
    count = len(values)
    low, high = values[0], values[-1]
    mean = np.clip((values / count).sum(axis=0), low, high)
    result.mean[columns], result.min[columns], result.max[columns] = mean, low, high
    result.median[columns] = np.median(values, axis=0) if count > 1 else low
    middle = values[count // 4 : count - count // 4]
    inner = (middle / len(middle)).sum(axis=0)
    result.iqm[columns] = np.clip(inner, middle[0], middle[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.std(values, axis=0, ddof=1) if count > 1 else np.full(len(columns), np.nan)
    result.stdev[columns] = np.where(np.isfinite(spread), spread, np.nan)
    result.stderr[columns] = result.stdev[columns] / np.sqrt(count)


def _fill_intervals(
    result: GroupBuckets,
    means: Floats,
    wanted: WantedIntervals,
    environments: Sequence[str] | None,
) -> None:
    """Writes the intervals; buckets with as many runs of each environment share resamples."""
    names = np.zeros(len(means), np.int64)
    if environments is not None:
        names = np.unique(np.array(environments), return_inverse=True)[1].reshape(-1)
    strata = [np.sort(means[names == name], axis=0) for name in range(names.max(initial=-1) + 1)]
    present = np.array([(~np.isnan(rows)).sum(axis=0) for rows in strata])
    kinds, which = np.unique(present, axis=1, return_inverse=True)
    for index, counts in enumerate(kinds.T):
        if counts.max() == 0 or counts[counts > 0].min() < MIN_SEEDS:
            continue
        columns = np.flatnonzero(which.reshape(-1) == index)
        # NaN is last in each environment, so its first rows are the runs with data.
        values = np.concatenate(
            [rows[:count, columns] for rows, count in zip(strata, counts, strict=True)]
        )
        _bound(result, columns, values, _draw(counts[counts > 0]), wanted)


def _bound(
    result: GroupBuckets, columns: Ints, values: Floats, drawn: Ints, wanted: WantedIntervals
) -> None:
    if wanted.of_mean:
        result.low[columns], result.high[columns] = _bound_means(values, drawn)
    if wanted.of_iqm:
        with np.errstate(over="ignore", invalid="ignore"):
            ends = _percentiles(trim_counts(values, drawn))
        result.iqm_low[columns], result.iqm_high[columns] = ends


def _draw(counts: Ints) -> Ints:
    """Returns how often each run is drawn, shape (resamples, runs), runs by environment.

    The draws depend on the numbers of runs alone, so hiding and adding runs elsewhere changes none.
    """
    rng = np.random.default_rng([_SEED, *counts.tolist()])
    sizes = np.repeat(counts, counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    draws = rng.random((RESAMPLES, len(sizes)))
    return count_draws(starts + (draws * sizes).astype(np.int64))


def _bound_means(values: Floats, drawn: Ints) -> tuple[Floats, Floats]:
    weights = drawn / len(values)
    parts = [
        _percentiles(weights @ values[:, first : first + _CHUNK])
        for first in range(0, values.shape[1], _CHUNK)
    ]
    low, high = np.concatenate(parts, axis=1)
    least, most = values.min(axis=0), values.max(axis=0)
    return np.clip(low, least, most), np.clip(high, least, most)


def _percentiles(means: Floats) -> Floats:
    return np.quantile(means, _LEVELS, axis=0)
