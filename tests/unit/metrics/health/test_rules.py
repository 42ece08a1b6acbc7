"""Each rule fires on the curves that it is for, and on no others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord

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
    assert found.sentence == "q/mean is 700, but rewards of at most 1 allow 100."
    assert rules.check_values(replace(record, entropy_bonus=True)) is None


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
