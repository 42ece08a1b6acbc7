"""Scores of runs, reference tables and curves over environment steps."""

import numpy as np
import pytest
import scipy.stats

from app.metrics.statistics.efficiency import carry_last_value, compute_efficiency
from app.metrics.statistics.references import TABLES, Reference, find_extremes, normalise
from app.metrics.statistics.scores import compute_area_score, compute_final_score


def test_final_score_is_the_mean_over_the_episodes_of_the_last_evaluations() -> None:
    means, episodes = np.array([900.0, 10.0, 40.0]), np.array([5, 1, 2])
    assert compute_final_score(means, episodes, 2) == pytest.approx((10.0 + 2 * 40.0) / 3)
    assert compute_final_score(means, episodes, 1) == 40.0
    with pytest.raises(ValueError, match="4 evaluations are needed, there are 3"):
        compute_final_score(means, episodes, 4)


def test_area_score_weighs_evaluations_by_their_distance() -> None:
    steps, means = np.array([0, 10, 100]), np.array([0.0, 10.0, 10.0])
    assert compute_area_score(steps, means) == pytest.approx((50 + 900) / 100)
    assert compute_area_score(steps[:1], means[2:]) == 10.0


@pytest.mark.parametrize(
    ("table", "environment", "expected"),
    [
        ("atari-human-1", "ALE/Pong-v5", Reference(-20.7, 14.6)),
        ("atari-human-1", "PongNoFrameskip-v4", Reference(-20.7, 14.6)),
        ("atari-human-1", "ALE/UpNDown-v5", Reference(533.4, 11693.2)),
        ("atari-human-1", "Pong", None),
        ("atari-human-1", "CartPole-v1", None),
        ("mujoco-d4rl-1", "Walker2d-v4", Reference(1.629008, 4592.3)),
        ("mujoco-d4rl-1", "Walker2d-v5", None),
    ],
)
def test_tables_find_environments_by_their_id(
    table: str, environment: str, expected: Reference | None
) -> None:
    assert TABLES[table].find(environment) == expected


def test_tables_have_different_scores_for_the_random_policy_and_the_reference() -> None:
    assert len(TABLES["atari-human-1"].scores) == 57
    assert all(
        one.reference > one.random for table in TABLES.values() for one in table.scores.values()
    )


def test_normalised_scores() -> None:
    np.testing.assert_allclose(
        normalise(np.array([-20.7, 14.6, 21.0]), Reference(-20.7, 14.6)), [0, 1, 41.7 / 35.3]
    )
    assert find_extremes(np.array([3.0, -1.0, 2.0])) == Reference(-1.0, 3.0)
    with pytest.raises(ValueError, match="equal"):
        normalise(np.array([1.0]), Reference(2.0, 2.0))


def test_values_are_carried_within_the_range_only() -> None:
    found = carry_last_value(
        np.array([10, 20, 20, 40]), np.array([1.0, 2.0, 3.0, 4.0]), np.arange(0.0, 60.0, 10.0)
    )
    np.testing.assert_array_equal(found, [np.nan, 1.0, 3.0, 3.0, 4.0, np.nan])
    assert np.isnan(carry_last_value(np.array([], np.int64), np.array([]), np.zeros(2))).all()


def test_efficiency_says_over_how_many_runs_each_position_is() -> None:
    values = np.random.default_rng(0).normal(size=(7, 5))
    values[5:, 3:] = np.nan
    values[1:, 4] = np.nan
    environments = ["a", "b", "a", "b", "a", "b", "a"]
    found = compute_efficiency(environments, values, np.random.default_rng(1), resamples=100)
    np.testing.assert_array_equal(found.n, [7, 7, 7, 5, 1])
    for column in range(5):
        runs = values[~np.isnan(values[:, column]), column]
        assert found.iqm[column] == pytest.approx(scipy.stats.trim_mean(runs, 0.25))
    # Environment b has two runs at the fourth position.
    assert (~np.isnan(found.low)).tolist() == [True, True, True, False, False]
    assert (found.low[:3] <= found.iqm[:3]).all()
    assert (found.iqm[:3] <= found.high[:3]).all()
