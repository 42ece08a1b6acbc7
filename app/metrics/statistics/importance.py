"""How much scores vary with a hyperparameter: rank correlation and variance explained.

Both look at one parameter at a time, so they see no interaction, and parameters that were changed
together cannot be told apart. Spearman (1904) is the rank correlation. The variance explained is
epsilon squared of a one-way analysis of variance (Kelley 1935, "An unbiased correlation ratio
measure"), which is 0 on average where the parameter has no effect, unlike eta squared.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.metrics.columns import Floats, Ints

MAX_LEVELS: Final = 4
"""Distinct numbers up to which each is a part of the split; more are split into quarters."""
MIN_RUNS: Final = 4
"""Fewest scores that importance is computed from."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Importance of one parameter.

    Attributes:
        correlation: Spearman's rank correlation, from -1 to 1; `None` for values without an order
            and for constant values or scores.
        explained: Epsilon squared, from 0 to 1; `None` if each run is a part of its own or all
            scores are equal.
        p_value: Share of permutations that are explained as well; `None` where `explained` is.
    """

    correlation: float | None
    explained: float | None
    p_value: float | None


def compute_importance(
    numbers: Floats | None, labels: Ints, scores: Floats, permuted: Floats
) -> Importance:
    """Returns the importance of one parameter.

    Args:
        numbers: Shape (runs,): values of the parameter; `None` if they have no order.
        labels: Shape (runs,): part of the split of each run, from `split_values`.
        scores: Shape (runs,).
        permuted: Shape (permutations, runs): permutations of `scores`.
    """
    explained = explain_variance(labels, scores[None, :])
    correlation = None if numbers is None else correlate_ranks(numbers, scores)
    if explained is None:
        return Importance(correlation, None, None)
    by_chance = explain_variance(labels, permuted)
    assert by_chance is not None
    # Sums of the same numbers in another order differ in their last digits.
    as_good = int((by_chance >= explained[0] - 1e-9).sum())
    p_value = (1 + as_good) / (1 + len(permuted))
    return Importance(correlation, float(np.clip(explained[0], 0.0, 1.0)), p_value)


def split_values(values: Sequence[Hashable], numbers: Floats | None) -> Ints:
    """Returns the part of each run in a split by the values.

    Args:
        values: The values: each is a part of its own.
        numbers: The values as numbers, if they have an order: more than `MAX_LEVELS` distinct ones
            are split at their quartiles.

    Returns:
        Shape (runs,): parts from 0 on, each with a run.
    """
    if numbers is not None and len(set(values)) > MAX_LEVELS:
        edges = np.quantile(numbers, (0.25, 0.5, 0.75))
        return np.unique(np.searchsorted(edges, numbers, side="left"), return_inverse=True)[1]
    order = {value: index for index, value in enumerate(dict.fromkeys(values))}
    return np.array([order[value] for value in values], np.int64)


def correlate_ranks(first: Floats, second: Floats) -> float | None:
    """Returns Spearman's rank correlation; equal values share their mean rank.

    `None` if all values of one of the two are equal.
    """
    left, right = (_rank(one) for one in (first, second))
    left, right = left - left.mean(), right - right.mean()
    size = float(np.sqrt((left @ left) * (right @ right)))
    return None if size == 0 else float(np.clip(left @ right / size, -1.0, 1.0))


def explain_variance(labels: Ints, scores: Floats) -> Floats | None:
    """Returns epsilon squared of a one-way split for each row of scores.

    Args:
        labels: Shape (runs,): part of each run, from 0 on.
        scores: Shape (rows, runs): rows are permutations of each other.

    Returns:
        Shape (rows,), at most 1 and below 0 where the split explains less than chance does; `None`
            where no two runs share a part, there is one part only, or all scores are equal.
    """
    runs, parts = len(labels), int(labels.max(initial=-1)) + 1
    # A scale keeps squares of scores up to 1e100 finite.
    centred = scores - scores.mean(axis=1, keepdims=True)
    scale = float(np.abs(centred).max(initial=0.0))
    if not 1 < parts < runs or scale == 0:
        return None
    centred /= scale
    total = (centred**2).sum(axis=1)
    sums = centred @ np.eye(parts)[labels]
    between = (sums**2 / np.bincount(labels, minlength=parts)).sum(axis=1)
    within = np.maximum(total - between, 0.0)
    found: Floats = 1 - (within / (runs - parts)) / (total / (runs - 1))
    return found


def _rank(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = ((2 * ends - counts - 1) / 2)[place]
    return ranks
