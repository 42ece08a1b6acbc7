"""The rules over recorded curves of healthy and faulty trainings, of a seed that set no limit."""

from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import health
from benchmarks._health.definitions import FAULTS, list_presets

RECORDED: Final = health.read_recorded(Path(__file__).parent / "trainings.json.gz")


@pytest.mark.parametrize("training", RECORDED, ids=lambda one: f"{one['name']}-{one['seed']}")
def test_findings_are_those_of_the_table(training: dict[str, Any]) -> None:
    found = health.judge(training)
    assert health.is_right(training["name"], found), found


def test_recorded_are_presets_and_faults_that_are_trained() -> None:
    names = {one["name"] for one in RECORDED}
    assert names <= {*list_presets(), *FAULTS}
    assert {one["seed"] for one in RECORDED} == {0}


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
