"""Statistics over runs equal those of rliable and scipy on random inputs, resample by resample.

`rliable.library` is not imported: it needs `arch`, which does not import with the pinned pandas.
Its intervals are the percentiles of its metrics over resamples, which is what is compared here.
"""

import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from rliable import metrics

from app.metrics.statistics import aggregates, bootstrap, comparisons, profiles
from app.metrics.statistics.aggregates import AGGREGATES, Estimate
from app.metrics.statistics.scores import Scores

shapes = st.tuples(st.integers(3, 12), st.integers(1, 8), st.integers(0, 2**32 - 1))
RLIABLE = {
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "iqm": metrics.aggregate_iqm,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


def draw(seeds: int, environments: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(rng.normal(size=environments), rng.gamma(1.0, size=environments) + 0.1)
    matrix = matrix + rng.normal(size=(seeds, environments))
    # Repeated scores are common where returns are capped.
    return np.round(matrix, 1) if seed % 2 else matrix


@given(shapes)
def test_aggregates_and_their_intervals_equal_rliable_on_the_same_resamples(
    shape: tuple[int, int, int],
) -> None:
    matrix = draw(*shape)
    scores = Scores.from_matrix(matrix)
    found = aggregates.compute_aggregates(scores, np.random.default_rng(7), gamma=1.0, resamples=50)
    (indices,) = bootstrap.draw_indices(scores, 50, np.random.default_rng(7))
    resampled = [scores.values[row].reshape(matrix.T.shape).T for row in indices]
    for name, function in RLIABLE.items():
        low, high = np.percentile([function(one) for one in resampled], (2.5, 97.5))
        expected = (function(matrix), low, high)
        assert (found[name].value, found[name].low, found[name].high) == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )


@given(shapes, st.integers(3, 12))
@settings(max_examples=20)
def test_probability_of_improvement_equals_rliable_on_the_same_resamples(
    shape: tuple[int, int, int], seeds: int
) -> None:
    x, y = draw(*shape), draw(seeds, shape[1], shape[2] + 2)
    first, second = Scores.from_matrix(x), Scores.from_matrix(y)
    found = comparisons.compute_probability_of_improvement(
        first, second, np.random.default_rng(3), resamples=20
    )
    assert found.value == pytest.approx(metrics.probability_of_improvement(x, y), abs=1e-12)
    left, right = np.random.default_rng(3).spawn(2)
    expected = [
        metrics.probability_of_improvement(
            first.values[a].reshape(x.T.shape).T, second.values[b].reshape(y.T.shape).T
        )
        for a, b in zip(
            next(bootstrap.draw_indices(first, 20, left)),
            next(bootstrap.draw_indices(second, 20, right)),
            strict=True,
        )
    ]
    low, high = np.percentile(expected, (2.5, 97.5))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@given(shapes)
def test_profiles_equal_the_shares_of_each_resample(shape: tuple[int, int, int]) -> None:
    matrix = draw(*shape)
    scores = Scores.from_matrix(matrix)
    thresholds = profiles.choose_thresholds(scores.values, 11)
    found = profiles.compute_profile(scores, thresholds, np.random.default_rng(5), resamples=30)
    (indices,) = bootstrap.draw_indices(scores, 30, np.random.default_rng(5))
    shares = np.array(
        [[np.mean(scores.values[row] > tau) for tau in thresholds] for row in indices]
    )
    np.testing.assert_allclose(found.share, [np.mean(matrix > tau) for tau in thresholds])
    low, high = np.percentile(shares, (2.5, 97.5), axis=0)
    np.testing.assert_allclose(found.low, low, atol=1e-12)
    np.testing.assert_allclose(found.high, high, atol=1e-12)


@given(shapes)
def test_trimmed_counts_equal_scipy_on_every_resample(shape: tuple[int, int, int]) -> None:
    values = draw(*shape)
    counts = np.random.default_rng(1).multinomial(
        len(values), np.full(len(values), 1 / len(values)), 9
    )
    found = bootstrap.trim_counts(values, counts)
    for row, count in enumerate(counts):
        for column in range(values.shape[1]):
            sample = np.repeat(values[:, column], count)
            assert found[row, column] == pytest.approx(
                scipy.stats.trim_mean(sample, 0.25), rel=1e-9, abs=1e-9
            )


@given(shapes)
@settings(max_examples=20)
def test_paired_difference_resamples_pairs(shape: tuple[int, int, int]) -> None:
    x = draw(*shape)
    shifted = Scores.from_matrix(x + 2.0)
    found = comparisons.compute_paired_difference(
        shifted, Scores.from_matrix(x), np.random.default_rng(0), resamples=200
    )
    # The seeds differ from each other by more than 0, from their partners by exactly 2.
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_blocks_of_resamples_do_not_change_the_draws() -> None:
    scores = Scores.from_matrix(draw(5, 3, 0))
    whole = next(bootstrap.draw_indices(scores, 100, np.random.default_rng(2)))
    parts = list(bootstrap.draw_indices(scores, 100, np.random.default_rng(2), rows=7))
    assert len(parts) == 15
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (scores.starts[1] <= whole[:, 5:10]).all()
    assert (whole[:, 5:10] < scores.starts[2]).all()


def test_interval_covers_the_true_value_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(11), 0
    for _ in range(200):
        scores = Scores.from_matrix(rng.normal(1.0, 1.0, size=(10, 6)))
        found = aggregates.compute_aggregates(scores, rng, resamples=400)["iqm"]
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert 0.87 <= covered / 200 <= 0.98


def test_two_seeds_in_one_environment_give_no_interval() -> None:
    runs = [("a", 1.0), ("a", 2.0), ("a", 4.0), ("b", 1.0), ("b", 3.0)]
    scores = Scores.from_runs(runs)
    found = aggregates.compute_aggregates(scores, np.random.default_rng(0), gamma=1.0)
    assert found["mean"] == Estimate(np.mean([7 / 3, 2.0]))
    assert all(one.low is None for one in found.values())
    more = Scores.from_runs([*runs, ("b", 2.0)])
    assert aggregates.compute_aggregates(more, np.random.default_rng(0))["iqm"].low is not None
    assert profiles.compute_profile(scores, np.zeros(1), np.random.default_rng(0)).low is None
    assert (
        comparisons.compute_probability_of_improvement(scores, more, np.random.default_rng(0)).low
        is None
    )


def test_environments_with_different_seeds_count_once_in_the_mean() -> None:
    scores = Scores.from_runs([("b", 10.0), ("a", 0.0), ("a", 2.0), ("b", 20.0), ("b", 30.0)])
    assert scores.environments == ("a", "b")
    np.testing.assert_array_equal(scores.values, [0.0, 2.0, 10.0, 20.0, 30.0])
    values = scores.values[None, :]
    assert AGGREGATES["mean"](scores, values)[0] == pytest.approx(10.5)
    assert AGGREGATES["iqm"](scores, values)[0] == pytest.approx(np.mean([2.0, 10.0, 20.0]))


def test_groups_of_different_environments_are_refused() -> None:
    first, second = Scores.from_runs([("a", 1.0)]), Scores.from_runs([("b", 1.0)])
    with pytest.raises(ValueError, match=re.escape("same environments")):
        comparisons.compute_probability_of_improvement(first, second, np.random.default_rng(0))
    third = Scores.from_runs([("a", 1.0), ("a", 2.0)])
    with pytest.raises(ValueError, match=re.escape("same seeds")):
        comparisons.compute_paired_difference(first, third, np.random.default_rng(0))
    with pytest.raises(ValueError, match=re.escape("finite")):
        Scores.from_runs([("a", float("nan"))])


def test_seeds_are_enough_when_the_interval_is_narrower_than_the_difference() -> None:
    estimates = [Estimate(10.0, 9.0, 11.0), Estimate(4.0, 0.0, 8.0), Estimate(9.5)]
    best, wide, unknown = comparisons.advise_on_seeds(estimates, [10, 5, 2])
    assert (best.rival, best.difference, best.width, best.enough) == (2, 0.5, 2.0, False)
    assert best.seeds == 160
    assert (wide.rival, wide.difference, wide.width) == (0, -6.0, 8.0)
    assert (wide.enough, wide.seeds) == (False, 9)
    assert (unknown.width, unknown.enough, unknown.seeds) == (None, False, 3)
    clear = comparisons.advise_on_seeds(estimates[:2], [10, 5])
    assert clear[0].enough
    (alone,) = comparisons.advise_on_seeds(estimates[:1], [10])
    assert (alone.rival, alone.enough) == (None, False)
