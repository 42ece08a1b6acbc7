"""Performance profiles: which share of the scores lies above each threshold."""

from dataclasses import dataclass

import numpy as np

from app.metrics.columns import Floats
from app.metrics.statistics import bootstrap
from app.metrics.statistics.scores import Scores


@dataclass(frozen=True, slots=True)
class Profile:
    """Shares of shape (thresholds,) with the ends of pointwise intervals; `None` without them."""

    share: Floats
    low: Floats | None = None
    high: Floats | None = None


def compute_profile(
    scores: Scores,
    thresholds: Floats,
    rng: np.random.Generator,
    *,
    resamples: int = bootstrap.RESAMPLES,
    level: float = 0.95,
) -> Profile:
    """Returns the share of all scores of a group above each threshold."""
    above = (scores.values[:, None] > thresholds).astype(np.float64) / len(scores.values)
    if not scores.allows_interval:
        return Profile(above.sum(axis=0))
    estimates = np.concatenate(
        [
            bootstrap.count_draws(indices) @ above
            for indices in bootstrap.draw_indices(scores, resamples, rng)
        ]
    )
    return Profile(above.sum(axis=0), *bootstrap.compute_interval(estimates, level))


def choose_thresholds(values: Floats, count: int) -> Floats:
    """Returns evenly spaced thresholds from the lowest to the highest of all scores."""
    return np.linspace(values.min(), values.max(), count)
