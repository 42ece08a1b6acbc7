"""Statistics over runs: exact where possible; sampled ones are repeatable."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from app.metrics.groups import WantedIntervals, carry_forward, summarise

matrices = hn.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 8)),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))),
)


@given(matrices)
def test_statistics_equal_those_of_each_column_alone(means: np.ndarray) -> None:
    found = summarise(means)
    for column in range(means.shape[1]):
        runs = means[:, column][~np.isnan(means[:, column])]
        assert found.n[column] == len(runs)
        if not len(runs):
            assert np.isnan(
                [found.mean[column], found.median[column], found.stdev[column], found.low[column]]
            ).all()
            continue
        assert found.mean[column] == pytest.approx(runs.mean(), abs=1e-6)
        assert found.median[column] == pytest.approx(np.median(runs), abs=1e-6)
        assert found.stdev[column] == pytest.approx(
            runs.std(ddof=1) if len(runs) > 1 else np.nan, abs=1e-6, nan_ok=True
        )
        assert (found.min[column], found.max[column]) == (runs.min(), runs.max())


@given(matrices)
def test_interval_lies_between_the_extremes_and_repeats(means: np.ndarray) -> None:
    found, again = summarise(means), summarise(means)
    np.testing.assert_array_equal(found.low, again.low)
    np.testing.assert_array_equal(found.high, again.high)
    assert np.isnan(found.low[found.n < 3]).all()
    enough = found.n >= 3
    assert bool(
        np.all(
            (found.min <= found.low)[enough]
            & (found.low <= found.high)[enough]
            & (found.high <= found.max)[enough]
        )
    )


def test_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).normal(3.0, 2.0, size=(20, 2_000))
    found = summarise(draws)
    covered = np.mean((found.low <= 3.0) & (found.high >= 3.0))
    # Percentile intervals of 20 runs are a little too narrow.
    assert 0.88 <= covered <= 0.97


def test_a_run_without_data_does_not_change_the_others() -> None:
    runs = np.random.default_rng(2).normal(size=(5, 30))
    with_an_empty_one = np.vstack([runs, np.full((1, 30), np.nan)])
    np.testing.assert_array_equal(summarise(runs).low, summarise(with_an_empty_one).low)
    np.testing.assert_array_equal(summarise(runs).mean, summarise(with_an_empty_one).mean)


NAN = float("nan")


class TestCarryForward:
    """Runs that ended keep their last value in the mean.

    Otherwise a mean curve falls when a seed stops at its target.
    """

    MEANS = np.array(
        [
            [100.0, 450.0, NAN, NAN, NAN],
            [90.0, 300.0, NAN, 306.0, NAN],
            [80.0, NAN, NAN, 294.0, NAN],
        ]
    )

    def test_an_ended_run_keeps_its_last_value_where_others_have_points(
        self,
    ) -> None:
        means, carried = carry_forward(self.MEANS, [(1, 450.0), None, None])
        np.testing.assert_array_equal(means[0], [100.0, 450.0, NAN, 450.0, NAN])
        np.testing.assert_array_equal(means[1:], self.MEANS[1:])
        assert carried.tolist() == [0, 0, 0, 1, 0]
        assert summarise(means).mean[3] == pytest.approx(350.0)
        assert summarise(self.MEANS).mean[3] == pytest.approx(300.0)

    def test_gaps_and_running_runs_are_not_filled(self) -> None:
        means, carried = carry_forward(self.MEANS, [(1, 450.0), None, (3, 294.0)])
        assert np.isnan(means[2, 1])
        assert np.isnan(means[:, 4]).all(), "nothing is carried beyond the last measured point"
        assert carried.tolist() == [0, 0, 0, 1, 0]

    def test_a_run_that_ended_before_the_range_counts_in_all_of_it(self) -> None:
        means, carried = carry_forward(np.array([[NAN, NAN], [7.0, 8.0]]), [(-1, 5.0), None])
        np.testing.assert_array_equal(means, [[5.0, 5.0], [7.0, 8.0]])
        assert carried.tolist() == [1, 1]

    @given(matrices)
    def test_without_an_ended_run_nothing_changes(self, means: np.ndarray) -> None:
        same, carried = carry_forward(means, [None] * len(means))
        np.testing.assert_array_equal(same, means)
        assert not carried.any()


def test_one_run_has_no_standard_deviation() -> None:
    """The standard deviation of a single run is unknown, not 0."""
    assert np.isnan(summarise(np.array([[5.0]])).stdev).all()


@given(matrices)
def test_interquartile_mean_equals_scipy_on_each_column(means: np.ndarray) -> None:
    found = summarise(means, WantedIntervals(of_iqm=True))
    for column in range(means.shape[1]):
        runs = means[:, column][~np.isnan(means[:, column])]
        expected = scipy.stats.trim_mean(runs, 0.25) if len(runs) else np.nan
        size = np.abs(runs).sum()
        assert found.iqm[column] == pytest.approx(expected, abs=1e-9 * size, nan_ok=True)
        assert np.isnan(found.iqm_low[column]) == (len(runs) < 3)


def test_intervals_resample_runs_within_each_environment() -> None:
    low, high = np.full((5, 3), 10.0), np.full((5, 3), 1_000.0)
    means, environments = np.concatenate([low, high]), ["a"] * 5 + ["b"] * 5
    # Runs of one environment are equal, so no resample within it differs.
    found = summarise(means, WantedIntervals(of_iqm=True), environments)
    np.testing.assert_allclose(found.low, 505.0)
    np.testing.assert_allclose(found.high, 505.0)
    np.testing.assert_allclose(found.iqm_low, found.iqm)
    pooled = summarise(means, WantedIntervals(of_iqm=True))
    assert (pooled.low < 505.0).all()
    assert (pooled.iqm_low < pooled.iqm_high).all()
    shuffled = np.random.default_rng(0).permutation(10)
    again = summarise(means[shuffled], environments=[environments[i] for i in shuffled])
    np.testing.assert_allclose(again.low, 505.0)
    few = summarise(means[:7], environments=environments[:7])
    assert np.isnan(few.low).all()
