"""Sample-efficiency curves: the interquartile mean of a group over environment steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.metrics.columns import Floats, Ints
from app.metrics.statistics import bootstrap
from app.metrics.statistics.scores import Scores


@dataclass(frozen=True, slots=True)
class EfficiencyCurve:
    """A group's curve on a grid; each array has the shape (positions,).

    Attributes:
        iqm: Interquartile mean over the runs in range; NaN where none is.
        low: Lower end of the interval; NaN where an environment has too few seeds in range.
        high: Upper end.
        n: Number of runs in range. Where it changes, so do the runs that the curve is over.
    """

    iqm: Floats
    low: Floats
    high: Floats
    n: Ints


def carry_last_value(x: Ints, values: Floats, grid: Floats) -> Floats:
    """Returns the value of the last point at or before each position of the grid.

    Args:
        x: Shape (points,), ascending; of several points at one position the last counts.
        values: Shape (points,).
        grid: Shape (positions,).

    Returns:
        Shape (positions,); NaN before the first and behind the last point: nothing is extrapolated.
    """
    if not len(x):
        return np.full(len(grid), np.nan)
    place = np.searchsorted(x, grid, side="right") - 1
    inside = (grid >= x[0]) & (grid <= x[-1])
    return np.where(inside, values[np.maximum(place, 0)], np.nan)


def compute_efficiency(
    environments: Sequence[str],
    values: Floats,
    rng: np.random.Generator,
    *,
    resamples: int = bootstrap.RESAMPLES,
    level: float = 0.95,
) -> EfficiencyCurve:
    """Returns the curve of a group.

    Args:
        environments: Environment of each run.
        values: Shape (runs, positions): scores on the common grid, NaN where a run is out of range.
        rng: Generator of the resamples; positions with the same runs share theirs.
        resamples: Number of resamples.
        level: Coverage of the intervals.
    """
    width = values.shape[1]
    iqm, low, high = np.full((3, width), np.nan)
    present = ~np.isnan(values)
    patterns, which = np.unique(present, axis=1, return_inverse=True)
    order = np.argsort(np.array(environments), kind="stable")
    for pattern in range(patterns.shape[1]):
        runs = order[patterns[order, pattern]]
        columns = np.flatnonzero(which.reshape(-1) == pattern)
        if not len(runs):
            continue
        chosen = values[np.ix_(runs, columns)]
        scores = Scores.from_runs([(environments[run], 0.0) for run in runs])
        iqm[columns] = bootstrap.trim_counts(chosen, np.ones((1, len(runs)), np.int64))[0]
        if scores.allows_interval:
            low[columns], high[columns] = _compute_band(scores, chosen, rng, resamples, level)
    return EfficiencyCurve(iqm, low, high, present.sum(axis=0))


def _compute_band(
    scores: Scores, values: Floats, rng: np.random.Generator, resamples: int, level: float
) -> tuple[Floats, Floats]:
    estimates = [
        bootstrap.trim_counts(values, bootstrap.count_draws(indices))
        for indices in bootstrap.draw_indices(scores, resamples, rng)
    ]
    return bootstrap.compute_interval(np.concatenate(estimates), level)
