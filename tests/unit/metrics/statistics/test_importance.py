"""Importance of hyperparameters against scipy and an analysis of variance by hand."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from app.metrics.statistics.importance import (
    compute_importance,
    correlate_ranks,
    explain_variance,
    split_values,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(4, 40))
def test_the_rank_correlation_is_that_of_scipy(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 6, size).astype(np.float64)
    second = rng.normal(size=size)
    first[0], first[1] = 0.0, 1.0
    found = correlate_ranks(first, second)
    assert found == pytest.approx(scipy.stats.spearmanr(first, second).statistic, abs=1e-12)


@given(SEEDS, st.integers(2, 5), st.integers(2, 9), st.sampled_from([1.0, 1e-90, 1e90]))
def test_the_variance_explained_is_that_of_the_f_statistic(
    seed: int, parts: int, each: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(parts), each)
    scores = rng.normal(size=len(labels)) + rng.normal(size=parts)[labels]
    f = scipy.stats.f_oneway(*(scores[labels == part] for part in range(parts))).statistic
    between, within = parts - 1, len(labels) - parts
    # Kelley 1935: (SSb - dfb MSw) / SSt, in terms of F = MSb / MSw.
    expected = between * (f - 1) / (between * f + within)
    found = explain_variance(labels, scores[None, :] * scale)
    assert found is not None
    assert found[0] == pytest.approx(expected, abs=1e-9)


def test_a_split_that_says_nothing_has_no_variance_explained() -> None:
    scores = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert explain_variance(np.array([0, 1, 2, 3]), scores) is None
    assert explain_variance(np.array([0, 0, 0, 0]), scores) is None
    assert explain_variance(np.array([0, 0, 1, 1]), np.ones((1, 4))) is None
    assert correlate_ranks(np.ones(4), scores[0]) is None


def test_many_numbers_are_split_at_their_quartiles_and_few_by_value() -> None:
    numbers = np.arange(12.0)
    labels = split_values(numbers.tolist(), numbers)
    assert np.bincount(labels).tolist() == [3, 3, 3, 3]
    assert split_values(["b", "a", "b"], None).tolist() == [0, 1, 0]
    few = np.array([3.0, 1.0, 3.0])
    assert split_values(few.tolist(), few).tolist() == [0, 1, 0]


def test_an_effect_is_told_apart_from_chance() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 10)
    scores = rng.normal(size=20) + 5.0 * labels
    permuted = rng.permuted(np.tile(scores, (1_000, 1)), axis=1)
    strong = compute_importance(labels.astype(np.float64), labels, scores, permuted)
    assert strong.explained is not None
    assert strong.explained > 0.7
    assert strong.p_value is not None
    assert strong.p_value <= 3 / 1_001
    assert strong.correlation is not None
    assert strong.correlation > 0.8
    none = compute_importance(None, np.tile([0, 1], 10), scores, permuted)
    assert none.explained is not None
    assert none.explained < 0.1
    assert none.p_value is not None
    assert none.p_value > 0.2
    assert none.correlation is None


def test_the_variance_explained_is_zero_on_average_without_an_effect() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4_000, 12))
    found = explain_variance(np.repeat([0, 1, 2], 4), scores)
    assert found is not None
    assert abs(found.mean()) < 0.01
