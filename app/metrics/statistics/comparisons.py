"""Comparisons of two groups: probability of improvement, paired differences, enough seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.metrics.columns import Floats, Ints
from app.metrics.statistics import bootstrap
from app.metrics.statistics.aggregates import AGGREGATES, Aggregate, Estimate
from app.metrics.statistics.scores import MIN_SEEDS, Scores


def compute_probability_of_improvement(
    first: Scores,
    second: Scores,
    rng: np.random.Generator,
    *,
    resamples: int = bootstrap.RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Returns how likely a run of `first` scores higher than one of `second`.

    The mean over environments of P(X > Y) + P(X = Y) / 2, the Mann-Whitney statistic over the
    number of pairs. The interval resamples both groups independently.

    Raises:
        ValueError: If the groups are not of the same environments.
    """
    _check_same_environments(first, second)
    blocks = _compare_environments(first, second)
    value = float(np.mean([block.mean() for block in blocks]))
    if not (first.allows_interval and second.allows_interval):
        return Estimate(value)
    rows = bootstrap.choose_rows(first, second)
    estimates = [
        _weigh(blocks, first, second, bootstrap.count_draws(left), bootstrap.count_draws(right))
        for left, right in zip(
            *(
                bootstrap.draw_indices(scores, resamples, own, rows=rows)
                for scores, own in zip((first, second), rng.spawn(2), strict=True)
            ),
            strict=True,
        )
    ]
    low, high = bootstrap.compute_interval(np.concatenate(estimates), level)
    return Estimate(value, float(low), float(high))


def compute_paired_difference(
    first: Scores,
    second: Scores,
    rng: np.random.Generator,
    *,
    aggregate: Aggregate = "iqm",
    resamples: int = bootstrap.RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Returns the aggregate of `first` less that of `second` over pairs of runs.

    Score i of both is of the same environment and seed. Resamples draw pairs, so what the seed does
    to both groups alike cancels out of the interval.

    Raises:
        ValueError: If the scores are not pairs.
    """
    _check_same_environments(first, second)
    if not np.array_equal(first.counts, second.counts):
        raise ValueError("paired scores must have the same seeds in every environment")
    function = AGGREGATES[aggregate]

    def subtract(left: Floats, right: Floats) -> Floats:
        return function(first, left) - function(second, right)

    value = float(subtract(first.values[None, :], second.values[None, :])[0])
    if not first.allows_interval:
        return Estimate(value)
    estimates = [
        subtract(first.values[indices], second.values[indices])
        for indices in bootstrap.draw_indices(first, resamples, rng)
    ]
    low, high = bootstrap.compute_interval(np.concatenate(estimates), level)
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True, slots=True)
class SeedAdvice:
    """Whether a group has enough seeds to be told apart from its best rival.

    Attributes:
        rival: Index of the other group with the highest aggregate; `None` without another group.
        difference: Aggregate of the group less that of the rival.
        width: Width of the group's interval; `None` with too few seeds for one.
        enough: Whether the interval is narrower than the difference.
        seeds: Seeds per environment at which the width would equal the difference, if it falls
            with the root of their number; `None` if that cannot be said.
    """

    rival: int | None
    difference: float | None
    width: float | None
    enough: bool
    seeds: int | None


def advise_on_seeds(estimates: Sequence[Estimate], seeds: Sequence[int]) -> list[SeedAdvice]:
    """Compares the interval of each group with the difference to its best rival.

    Args:
        estimates: Aggregate of each group, higher is better.
        seeds: Fewest seeds per environment of each group.
    """
    return [_advise(index, estimates, seeds[index]) for index in range(len(estimates))]


def _advise(index: int, estimates: Sequence[Estimate], seeds: int) -> SeedAdvice:
    own = estimates[index]
    width = None if own.low is None or own.high is None else own.high - own.low
    others = [other for other in range(len(estimates)) if other != index]
    if not others:
        return SeedAdvice(None, None, width, enough=False, seeds=None)
    rival = max(others, key=lambda other: estimates[other].value)
    difference = own.value - estimates[rival].value
    if width is None or difference == 0:
        needed = MIN_SEEDS if width is None else None
        return SeedAdvice(rival, difference, width, enough=False, seeds=needed)
    ratio = width / abs(difference)
    needed = math.ceil(min(seeds * ratio**2, 1e9))
    return SeedAdvice(rival, difference, width, enough=ratio < 1, seeds=max(needed, MIN_SEEDS))


def _check_same_environments(first: Scores, second: Scores) -> None:
    if first.environments != second.environments:
        raise ValueError("groups must be of the same environments")


def _compare_environments(first: Scores, second: Scores) -> list[Floats]:
    """Returns per environment 1, 1/2 or 0 for each pair of runs, shape (first, second)."""
    return [
        np.heaviside(left[:, None] - right[None, :], 0.5)
        for left, right in zip(
            np.split(first.values, first.starts[1:]),
            np.split(second.values, second.starts[1:]),
            strict=True,
        )
    ]


def _weigh(
    blocks: Sequence[Floats], first: Scores, second: Scores, left: Ints, right: Ints
) -> Floats:
    """Returns the statistic of each resample, given how often each run was drawn."""
    total = np.zeros(len(left))
    for index, block in enumerate(blocks):
        start, size = first.starts[index], first.counts[index]
        other, width = second.starts[index], second.counts[index]
        drawn = left[:, start : start + size] @ block
        total += (drawn * right[:, other : other + width]).sum(axis=1) / (size * width)
    return total / len(blocks)
