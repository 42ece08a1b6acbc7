"""Each rule fires on the curves that it is for, and on no others."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord
from palestra.contract import health

STEPS = np.arange(40) * 1_000.0


def trace(values: object, nonfinite: object = 0) -> HealthSeries:
    mean = np.broadcast_to(np.asarray(values, np.float64), STEPS.shape)
    counts = np.broadcast_to(np.asarray(nonfinite, np.int64), STEPS.shape)
    return HealthSeries(STEPS, mean, mean, mean, counts)


def make_healthy() -> TrainingRecord:
    """A training that improves and stays there, with all the series that the rules read."""
    rise = np.linspace(0, 1, 40)
    evaluations = np.concatenate([np.linspace(20, 480, 20), np.tile([480.0, 500.0, 470.0], 7)])
    return TrainingRecord(
        series={
            "q/mean": trace(95 * rise),
            "reward/largest": trace(1.0),
            "policy/entropy": trace(0.69 - 0.4 * rise),
            "policy/kl": trace(0.01),
            "policy/clip_fraction": trace(0.15),
            "gradient/norm": trace(3.0),
            "value/explained_variance": trace(rise - 0.2),
            "episode/return": trace(480 * rise),
            "system/gpu0_util_percent": trace(35.0),
            "loss/td": trace(0.1),
        },
        evaluation_steps=np.arange(41) * 1_000,
        evaluation_means=evaluations,
        env_steps=40_000,
        gamma=0.99,
        max_grad_norm=0.5,
        max_episode_steps=500,
    )


def with_series(**changes: HealthSeries | None) -> Callable[[TrainingRecord], TrainingRecord]:
    def change(record: TrainingRecord) -> TrainingRecord:
        named = {name.replace("__", "/"): one for name, one in changes.items()}
        series = {**record.series, **named}
        kept = {name: one for name, one in series.items() if one is not None}
        return replace(record, series=kept)

    return change


def fall(record: TrainingRecord) -> TrainingRecord:
    means = np.concatenate([record.evaluation_means, np.full(10, 30.0)])
    fallen = replace(record, evaluation_means=means, evaluation_steps=np.arange(51) * 1_000)
    returns = np.where(np.arange(40) < 30, np.linspace(0, 480, 40), 30.0)
    return with_series(episode__return=trace(returns))(fallen)


def lower_evaluations(record: TrainingRecord) -> TrainingRecord:
    low = np.full(41, 15.0)
    return replace(record, evaluation_means=low)


BROKEN = {
    "values_above_rewards": with_series(q__mean=trace(np.linspace(0, 900, 40))),
    "entropy_collapsed": with_series(
        policy__entropy=trace(np.linspace(0.69, 0.0, 40) ** 3), policy__kl=trace(1e-7)
    ),
    "explained_variance_negative": with_series(value__explained_variance=trace(-0.4)),
    "policy_steps_too_large": with_series(policy__clip_fraction=trace(0.7)),
    "gradients_clipped": with_series(gradient__norm=trace(5_000.0)),
    "return_fell": fall,
    "no_episode_finished": with_series(episode__return=None),
    "not_finite": with_series(loss__td=trace(0.1, np.arange(40) == 30)),
    "evaluation_below_training": lower_evaluations,
    "gpu_idle": with_series(system__gpu0_util_percent=trace(1.0)),
}


def test_a_healthy_training_has_no_findings() -> None:
    assert rules.find_faults(make_healthy()) == []
    assert rules.find_faults(TrainingRecord()) == []
    assert len(BROKEN) == len(rules.RULES)


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_fires_alone_on_its_fault(rule: str) -> None:
    (found,) = rules.find_faults(BROKEN[rule](make_healthy()))
    assert found.rule == rule
    assert any(character.isdigit() for character in found.sentence)
    assert found.sentence.endswith(".")
    assert found.remedy.endswith(".")
    assert found.series or rule == "no_episode_finished"


def test_the_bound_of_values_without_discount_is_the_episode_limit() -> None:
    record = with_series(q__mean=trace(700.0))(make_healthy())
    assert rules.check_values(replace(record, gamma=1.0)) is None
    assert rules.check_values(replace(record, gamma=1.0, max_episode_steps=100)) is not None
    assert rules.check_values(replace(record, gamma=1.0, max_episode_steps=None)) is None
    found = rules.check_values(record)
    assert found is not None
    assert found.sentence == (
        "q/mean reached 700 around 23000 env_steps, but rewards of at most 1 allow 100."
    )
    assert rules.check_values(replace(record, entropy_bonus=True)) is None


def test_values_that_diverged_for_a_tenth_of_the_training_are_found_until_as_long_after() -> None:
    values = np.full(40, 60.0)
    values[20:24] = -1_000.0
    record = with_series(q__mean=trace(values))(make_healthy())
    found = rules.check_values(record)
    assert found is not None
    assert found.env_step == 23_000
    assert found.sentence.startswith("q/mean reached 1000 around 23000 env_steps, ")
    recovered = trace(np.roll(values, -4))
    assert rules.check_values(with_series(q__mean=recovered)(make_healthy())) is None
    values[21:24] = 60.0  # One bucket of 295 on average over four is below 1.5 times the bound.
    values[20] = -300.0
    assert rules.check_values(with_series(q__mean=trace(values))(make_healthy())) is None
    gaps = np.where(np.arange(40) % 2, math.nan, 700.0)
    assert rules.check_values(with_series(q__mean=trace(gaps))(make_healthy())) is not None


def test_an_episode_has_time_to_end_in_each_environment() -> None:
    record = with_series(episode__return=None)(replace(make_healthy(), max_episode_steps=None))
    for num_envs, env_steps, is_found in [
        (1, 9_999, False),
        (1, 10_000, True),
        (4, 11_999, False),
        (4, 12_000, True),
    ]:
        changed = replace(record, num_envs=num_envs, env_steps=env_steps)
        assert (rules.check_episodes(changed) is not None) == is_found
    limited = replace(record, max_episode_steps=5_000, num_envs=8)
    assert rules.check_episodes(replace(limited, env_steps=79_999)) is None
    found = rules.check_episodes(replace(limited, env_steps=80_000))
    assert found is not None
    assert found.sentence == "No episode finished in 80000 env_steps."


def test_environments_of_a_record_are_those_that_step_together() -> None:
    def count(definition: dict[str, Any]) -> int:
        return TrainingRecord.from_definition(definition, {}, [], 0).num_envs

    assert count({"agent": {"name": "dqn"}, "env": {"num_envs": 8}}) == 8
    assert count({"agent": {"name": "a3c", "processes": 2}, "env": {"num_envs": 1}}) == 2
    assert count({}) == 1


def test_kl_out_of_range_is_found_without_a_clip_fraction() -> None:
    record = with_series(policy__clip_fraction=None, policy__kl=trace(0.5))(make_healthy())
    found = rules.check_policy_steps(record)
    assert found is not None
    assert found.sentence == "policy/kl is 0.5, above 0.2: each update changes the policy too much."
    early = np.where(np.arange(40) < 29, 0.5, 0.01)
    assert rules.check_policy_steps(with_series(policy__kl=trace(early))(make_healthy())) is None


def test_gradients_are_compared_with_the_clip_and_have_to_stay_above_it() -> None:
    clipped = BROKEN["gradients_clipped"](make_healthy())
    found = rules.check_gradients(clipped)
    assert found is not None
    assert found.sentence == "gradient/norm stays above 5000, 1e+04 times the clip at 0.5."
    assert rules.check_gradients(replace(clipped, max_grad_norm=None)) is None
    dips = np.where(np.arange(40) == 35, 3.0, 5_000.0)
    assert rules.check_gradients(with_series(gradient__norm=trace(dips))(make_healthy())) is None


def test_a_return_of_the_environment_that_is_no_number_is_found() -> None:
    returns = trace(100.0, np.arange(40) == 7)
    found = rules.check_finite(with_series(episode__return=returns)(make_healthy()))
    assert found is not None
    assert found.sentence == (
        "episode/return has 1 values that are not finite, the first around 7000 env_steps."
    )
    assert found.remedy == "Check the rewards of the environment."


def test_the_step_of_a_fall_is_right_where_an_evaluation_has_no_mean() -> None:
    fallen = fall(make_healthy())
    whole = rules.check_fall(fallen)
    means = fallen.evaluation_means.copy()
    means[3] = math.nan
    gap = rules.check_fall(replace(fallen, evaluation_means=means))
    assert whole is not None
    assert gap is not None
    assert gap.env_step == whole.env_step


def test_evaluations_above_or_near_training_are_no_finding() -> None:
    training = np.linspace(0, 480, 40)
    for evaluated, is_found in [(600.0, False), (300.0, False), (200.0, True)]:
        record = replace(make_healthy(), evaluation_means=np.full(41, evaluated))
        found = rules.check_evaluation(with_series(episode__return=trace(training))(record))
        assert (found is not None) == is_found
        if found is not None:
            assert found.sentence == "Evaluations return 200, training episodes 461.5."


def test_evaluations_are_compared_with_the_training_since_the_first_of_them() -> None:
    # The return rose between the last two evaluations, after most of the last 5 were made.
    steps = np.array([5, 10, 15, 20, 25, 36]) * 1_000
    means = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 480.0])
    rise = np.where(np.arange(40) < 28, 0.0, 480.0)
    record = replace(make_healthy(), evaluation_means=means, evaluation_steps=steps)
    changed = with_series(episode__return=trace(rise))(record)
    assert rules.check_evaluation(changed) is None
    late = replace(record, evaluation_steps=np.array([34, 35, 36, 37, 38, 39]) * 1_000)
    changed = with_series(episode__return=trace(rise))(replace(late, evaluation_means=0 * means))
    assert rules.check_evaluation(changed) is not None


def test_a_gpu_that_is_busy_in_the_last_half_is_not_idle() -> None:
    use = np.where(np.arange(40) < 20, 0.0, 30.0)
    record = make_healthy()
    assert rules.check_gpu(with_series(system__gpu0_util_percent=trace(use))(record)) is None
    found = rules.check_gpu(with_series(system__gpu1_util_percent=trace(use[::-1]))(record))
    assert found is not None
    assert found.series == "system/gpu1_util_percent"
    assert found.sentence == (
        "system/gpu1_util_percent is 0 on average: the environment is the bottleneck."
    )


def test_rules_have_the_names_of_the_contract_and_name_their_series() -> None:
    assert {*BROKEN} == {*health.RULES}
    found = [
        rule
        for rule in health.RULES
        for finding in rules.find_faults(BROKEN[rule](make_healthy()))
        if finding.rule == rule
    ]
    assert found == list(health.RULES)
    for check in rules.RULES:
        assert "Series: " in (check.__doc__ or "")


def test_a_return_that_recovers_has_not_fallen() -> None:
    fallen = fall(make_healthy())
    back = fallen.evaluation_means.copy()
    back[-1] = 490.0
    assert rules.check_fall(replace(fallen, evaluation_means=back)) is None
    short = replace(
        fallen,
        evaluation_means=fallen.evaluation_means[:-1],
        evaluation_steps=fallen.evaluation_steps[:-1],
    )
    assert rules.check_fall(short) is None
    steady = replace(fallen, evaluation_means=np.full(30, 9.0), evaluation_steps=np.arange(30))
    assert rules.check_fall(steady) is None


def test_differential_entropy_is_not_judged() -> None:
    record = with_series(policy__entropy=trace(np.linspace(1.4, -3.0, 40)), policy__kl=trace(1e-7))(
        make_healthy()
    )
    assert rules.check_entropy(record) is None


@pytest.mark.parametrize(
    ("explained", "loss", "is_found"),
    [(-2.0, 0.25, False), (-2.0, 400.0, True), (-2.0, None, True), (-0.05, 400.0, False)],
)
def test_values_of_a_solved_task_explain_nothing_and_are_right(
    explained: float, loss: float | None, is_found: bool
) -> None:
    series = {
        "value__explained_variance": trace(explained),
        "value__mean": trace(50.0),
        "loss__value": None if loss is None else trace(loss),
    }
    record = with_series(**series)(make_healthy())
    assert (rules.check_explained_variance(record) is not None) == is_found


def test_one_rollout_far_below_zero_is_no_finding() -> None:
    values = np.where(np.arange(40) % 5 == 0, -500.0, 0.8)
    record = with_series(value__explained_variance=trace(values))(make_healthy())
    assert rules.check_explained_variance(record) is None


def test_series_that_rules_read() -> None:
    names = ["loss/td", "memory/size", "episode/return", "system/gpu0_util_percent", "system/cpu"]
    assert rules.list_series(names) == ["loss/td", "episode/return", "system/gpu0_util_percent"]
