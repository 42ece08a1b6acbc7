"""The rules over recorded curves of healthy and faulty trainings, of a seed that set no limit."""

import bisect
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import health
from benchmarks._health.definitions import FAULTS, build_submission, list_presets

RECORDED: Final = health.read_recorded(Path(__file__).parent / "trainings.json.gz")
TEMPORARY: Final = {
    "lunarlander-ppo": {"evaluation_below_training"},
    "recall-recurrent-ppo": {"explained_variance_negative"},
}
"""Findings about healthy trainings before their end, which are true at that time.

The most probable actions land worse than sampled ones until half of the training, and the value
function is behind returns that rise from a fifth to one within a few rollouts.
"""


def shorten(training: dict[str, Any], share: float) -> dict[str, Any]:
    """Returns the curves as they were after a share of the training."""
    end = training["env_steps"] * share
    series = {}
    for name, columns in training["series"].items():
        count = bisect.bisect_right(columns["env_step"], end)
        if count:
            series[name] = {column: values[:count] for column, values in columns.items()}
    steps, means = training["evaluations"]
    count = bisect.bisect_right(steps, end)
    evaluations = [steps[:count], means[:count]]
    return {**training, "series": series, "evaluations": evaluations, "env_steps": int(end)}


@pytest.mark.parametrize("training", RECORDED, ids=lambda one: f"{one['name']}-{one['seed']}")
def test_findings_are_those_of_the_table(training: dict[str, Any]) -> None:
    found = health.judge(training)
    assert health.is_right(training["name"], found), found


def test_every_preset_and_every_fault_is_recorded_once() -> None:
    assert sorted(one["name"] for one in RECORDED) == sorted([*list_presets(), *FAULTS])
    assert len(FAULTS) >= 10
    assert {one["seed"] for one in RECORDED} == {0}
    for one in RECORDED:
        budget = build_submission(one["name"]).definition.model_dump()["loop"]["env_steps"]
        assert one["reason"] in {"success_score", "diverged"} or one["env_steps"] == budget


@pytest.mark.parametrize("name", list_presets())
def test_healthy_trainings_have_no_finding_while_they_train(name: str) -> None:
    (training,) = (one for one in RECORDED if one["name"] == name)
    found = {rule for part in range(1, 20) for rule in health.judge(shorten(training, part / 20))}
    assert found <= TEMPORARY.get(name, set())


def test_a_row_says_what_was_expected_and_found() -> None:
    row = health.build_row(next(one for one in RECORDED if one["name"] == "ppo-huge-rewards"))
    assert row == [
        "ppo-huge-rewards",
        "rewards of 1e30",
        "0",
        "20,480",
        "not_finite",
        "not_finite",
        "✓",
    ]
