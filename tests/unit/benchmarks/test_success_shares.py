"""The comparison of the number of seeds that reach a return.

Covers its confidence intervals and its file of results.
"""

import json
from pathlib import Path

import pytest

from benchmarks._peers.tables import PACK
from benchmarks._peers.tasks import TASKS
from benchmarks.success_shares import (
    OURS,
    StoredReturns,
    compute_wilson_interval,
    count_rows,
    list_trainings,
)


@pytest.mark.parametrize(
    ("reached", "count", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (41, 52, 0.6597, 0.8776),
        (40, 40, 0.9124, 1.0),
    ],
)
def test_intervals_are_wilson_intervals(reached: int, count: int, low: float, high: float) -> None:
    assert compute_wilson_interval(reached, count) == pytest.approx((low, high), abs=1e-4)


def test_interval_bounds_are_the_extreme_shares_that_the_test_accepts() -> None:
    for reached, count in ((3, 20), (36, 40)):
        for end in compute_wilson_interval(reached, count):
            assert abs(reached / count - end) == pytest.approx(
                1.959964 * (end * (1 - end) / count) ** 0.5
            )


def make_line(peer: str, seeds: str, returns: list[float], task: str = "ppo") -> dict[str, object]:
    return {
        "peer": peer,
        "task": task,
        "seeds": seeds,
        "returns": returns,
        "mean_return": returns[0],
    }


def test_seeds_with_stored_results_are_not_trained_again(tmp_path: Path) -> None:
    file, task = tmp_path / "kept", TASKS["ppo"]
    kept = StoredReturns(task, file)
    kept.add(make_line(PACK, "0,1", [500.0, 300.0]))
    kept.add(make_line("sb3", "1", [475.0]))
    file.write_text(file.read_text() + json.dumps(make_line("sb3", "0", [9.0], task="dqn1")) + "\n")
    again = StoredReturns(task, file)
    assert list(count_rows(again, ["sb3", "plain"], range(4), 475.0)) == [
        (OURS, 1, 2),
        ("sb3", 1, 1),
    ]
    commands = [
        command[command.index("--seeds") + 1]
        for command in list_trainings(again, task, ["sb3"], range(4), 2)
    ]
    assert commands == ["2,3", "0", "2", "3"]


def test_a_single_seed_is_trained_as_a_pack() -> None:
    commands = [
        command[command.index("--seeds") + 1]
        for command in list_trainings(
            StoredReturns(TASKS["ppo"], None), TASKS["ppo"], [], range(3), 2
        )
    ]
    assert commands == ["0,1", "2,5"]
