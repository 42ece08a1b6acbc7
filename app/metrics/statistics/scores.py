"""Scores of runs: one number per run, grouped by environment."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from app.metrics.columns import Floats, Ints

MIN_SEEDS = 3
"""Number of seeds in every environment from which intervals are computed."""


@dataclass(frozen=True)
class Scores:
    """The score matrix of a group: seeds times environments, which may have different seeds.

    Attributes:
        values: Shape (scores,): one score per run, those of an environment consecutive.
        environments: Names of the environments in the order of `values`.
        counts: Shape (environments,): number of scores of each, at least 1.
    """

    values: Floats
    environments: tuple[str, ...]
    counts: Ints

    @classmethod
    def from_runs(cls, runs: Sequence[tuple[str, float]]) -> Self:
        """Returns the matrix of (environment, score) pairs, which keep their order within one.

        Raises:
            ValueError: If there is no pair or a score is not finite.
        """
        ordered = sorted(runs, key=lambda run: run[0])
        values = np.array([score for _, score in ordered], np.float64)
        if not len(values) or not np.isfinite(values).all():
            raise ValueError("scores must be finite, and there must be at least one")
        counts = Counter(name for name, _ in ordered)
        return cls(values, tuple(counts), np.array(list(counts.values()), np.int64))

    @classmethod
    def from_matrix(cls, matrix: Floats) -> Self:
        """Returns the scores of a matrix of shape (seeds, environments)."""
        seeds, environments = matrix.shape
        names = tuple(f"{index:04d}" for index in range(environments))
        return cls(matrix.T.reshape(-1).astype(np.float64), names, np.full(environments, seeds))

    @cached_property
    def starts(self) -> Ints:
        """Shape (environments,): index of the first score of each environment."""
        return np.cumsum(self.counts) - self.counts

    @property
    def fewest_seeds(self) -> int:
        """Number of scores of the environment with the fewest."""
        return int(self.counts.min())

    @property
    def allows_interval(self) -> bool:
        """Whether every environment has enough seeds for a bootstrap interval."""
        return self.fewest_seeds >= MIN_SEEDS


def compute_final_score(means: Floats, episodes: Ints, last: int) -> float:
    """Returns the mean over the episodes of the last evaluations.

    Args:
        means: Shape (evaluations,): mean return of each evaluation, in order of training.
        episodes: Shape (evaluations,): number of its episodes.
        last: Number of evaluations at the end that count.

    Raises:
        ValueError: If there are fewer evaluations than `last`.
    """
    if not 0 < last <= len(means):
        raise ValueError(f"{last} evaluations are needed, there are {len(means)}")
    weights = episodes[-last:] / episodes[-last:].sum()
    return float(weights @ means[-last:])


def compute_area_score(env_steps: Ints, means: Floats) -> float:
    """Returns the mean height of the evaluation curve: its trapezoidal area over its length.

    One evaluation, or several at one position, give their mean.

    Raises:
        ValueError: If there is no evaluation.
    """
    if not len(means):
        raise ValueError("there is no evaluation")
    length = float(env_steps[-1] - env_steps[0])
    if length == 0:
        return float(means.mean())
    return float(np.trapezoid(means, env_steps.astype(np.float64)) / length)
