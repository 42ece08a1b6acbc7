"""Smooths curves that are on a grid, so every curve of an answer is smoothed alike.

Debiased exponential averages, as TensorBoard and W&B draw them: a value is the weighted mean of all
values up to it, so the first one stays as it is.
"""

import numpy as np

from app.metrics.columns import Floats


def smooth_by_bucket(means: Floats, weight: float) -> Floats:
    """Returns the debiased exponential average: a value counts `weight` times the next one.

    Args:
        means: Shape (curves, buckets); NaN where a bucket has no value, there and in the result.
        weight: In [0, 1); 0 changes nothing.
    """
    return _smooth(means, np.full(means.shape, weight))


def smooth_by_distance(means: Floats, half_life: float) -> Floats:
    """Returns the debiased average in which the weight of a value halves with every `half_life`.

    Args:
        means: Shape (curves, buckets); NaN where a bucket has no value, there and in the result.
        half_life: Buckets after which a value counts half.
    """
    places = np.arange(means.shape[1], dtype=np.float64)
    filled = np.where(np.isnan(means), -np.inf, places)
    before = np.maximum.accumulate(filled, axis=1)
    before = np.concatenate((np.full((len(means), 1), -np.inf), before[:, :-1]), axis=1)
    return _smooth(means, np.exp2((before - places) / half_life))


def _smooth(means: Floats, decay: Floats) -> Floats:
    """Returns the averages; `decay` is what the values before count, relative to the present one.

    The share of the present value is kept instead of two sums, so large values do not overflow.
    """
    result = np.full(means.shape, np.nan)
    average = np.zeros(len(means))
    count = np.zeros(len(means))
    for bucket in range(means.shape[1]):
        value = means[:, bucket]
        known = ~np.isnan(value)
        kept = decay[:, bucket] * count
        share = 1 / (kept + 1)
        moved = average * (1 - share) + np.where(known, value, 0.0) * share
        average = np.where(known, moved, average)
        count = np.where(known, kept + 1, count)
        result[known, bucket] = average[known]
    return result
