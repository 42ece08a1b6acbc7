"""Aggregates over all scores of a group: mean, median, interquartile mean, optimality gap."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from app.metrics.columns import Floats
from app.metrics.statistics import bootstrap
from app.metrics.statistics.scores import Scores

Aggregate = Literal["mean", "median", "iqm", "optimality_gap"]
"""Name of an aggregate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic and its interval; `low` and `high` are `None` with too few seeds."""

    value: float
    low: float | None = None
    high: float | None = None


def aggregate_mean(scores: Scores, values: Floats) -> Floats:
    """Returns the mean over environments of the mean score of each.

    Args:
        scores: Says which values are of which environment.
        values: Shape (rows, scores): scores or resamples of them.

    Returns:
        Shape (rows,); so for the other aggregates.
    """
    found: Floats = _average_environments(scores, values).mean(axis=1)
    return found


def aggregate_median(scores: Scores, values: Floats) -> Floats:
    """Returns the median over environments of the mean score of each."""
    found: Floats = np.median(_average_environments(scores, values), axis=1)
    return found


def aggregate_iqm(scores: Scores, values: Floats) -> Floats:
    """Returns the interquartile mean: of the middle half of all scores, over environments pooled.

    A quarter of the scores, rounded down, is left out at each end.
    """
    size = len(scores.values)
    cut = size // 4
    middle = np.partition(values, (cut, size - cut - 1), axis=1)[:, cut : size - cut]
    found: Floats = middle.mean(axis=1)
    return found


def aggregate_optimality_gap(scores: Scores, values: Floats, gamma: float = 1.0) -> Floats:
    """Returns by how much scores fall short of `gamma` on average; those above count as `gamma`."""
    del scores
    found: Floats = gamma - np.minimum(values, gamma).mean(axis=1)
    return found


AGGREGATES: Final[Mapping[Aggregate, Callable[[Scores, Floats], Floats]]] = {
    "mean": aggregate_mean,
    "median": aggregate_median,
    "iqm": aggregate_iqm,
}
"""Aggregates that need no threshold."""


def compute_aggregates(
    scores: Scores,
    rng: np.random.Generator,
    *,
    gamma: float | None = None,
    resamples: int = bootstrap.RESAMPLES,
    level: float = 0.95,
) -> dict[Aggregate, Estimate]:
    """Returns all aggregates of a group with their intervals, over the same resamples.

    Args:
        scores: Scores of the group.
        rng: Generator of the resamples.
        gamma: Threshold of the optimality gap; `None` leaves the gap out.
        resamples: Number of resamples.
        level: Coverage of the intervals.
    """
    wanted: dict[Aggregate, Callable[[Scores, Floats], Floats]] = dict(AGGREGATES)
    if gamma is not None:
        wanted["optimality_gap"] = partial(aggregate_optimality_gap, gamma=gamma)

    def compute(values: Floats) -> Floats:
        return np.stack([function(scores, values) for function in wanted.values()], axis=1)

    found = compute(scores.values[None, :])[0].tolist()
    if not scores.allows_interval:
        return {name: Estimate(value) for name, value in zip(wanted, found, strict=True)}
    low, high = bootstrap.compute_interval(
        bootstrap.resample(scores, compute, resamples, rng), level
    )
    return {
        name: Estimate(*ends)
        for name, *ends in zip(wanted, found, low.tolist(), high.tolist(), strict=True)
    }


def _average_environments(scores: Scores, values: Floats) -> Floats:
    return np.add.reduceat(values, scores.starts, axis=1) / scores.counts
