"""Which code computes the environments of an attempt, and what its report says."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from palestra.contract.names import TRAINER_SIMULATOR
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_attempt import (
    add_newest_snapshot,
    execute_with_input,
)
from tests.unit.workers.trainer_process.test_schedules import execute, make_attempt, read_records
from workers.rl.envs import factory

COLUMNS = ("env_step", "episode_return", "episode_length")
CARTPOLE = {"id": "CartPole-v1", "num_envs": 4}


def train(root: Path, env: dict[str, Any]) -> tuple[Any, list[tuple[Any, ...]]]:
    """Returns the provenance of a training, and env_step, return and length of its episodes."""
    directory = make_attempt(root, make_work_order(make_definition(env=env)))
    report = execute(directory)
    episodes = [
        episode
        for record in read_records(directory, "episodes")
        for episode in zip(*(record[name] for name in COLUMNS), strict=True)
    ]
    return report.provenance, episodes


def test_both_simulators_give_the_same_episodes_and_the_report_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, episodes = train(tmp_path / "own", CARTPOLE)
    assert own["simulator"] == "palestra"
    monkeypatch.setenv(TRAINER_SIMULATOR, "registered")
    monkeypatch.setattr(factory, "CartPoleVector", None)
    monkeypatch.setattr(factory, "SavedCartPole", None)
    registered, same = train(tmp_path / "registered", CARTPOLE)
    assert registered["simulator"] == "registered"
    assert episodes == same
    assert len(same) > 5


def test_an_environment_without_a_simulator_of_palestras_names_none(tmp_path: Path) -> None:
    provenance, _ = train(tmp_path, {"id": "FrozenLake-v1"})
    assert "simulator" not in provenance


def test_an_evaluation_without_its_environment_is_reported_with_the_cause(tmp_path: Path) -> None:
    gym.register("Absent-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
    definition = make_definition(env={"id": "Absent-v0", "max_episode_steps": 20})
    try:
        directory = make_attempt(tmp_path / "trained", make_work_order(definition))
        assert execute(directory).failure is None
    finally:
        del gym.registry["Absent-v0"]
    order = make_work_order(
        definition, schedule="evaluate", **add_newest_snapshot(directory, {"episodes": 1})
    )
    _, report = execute_with_input(tmp_path, directory, order)
    assert report.failure is not None
    assert "Absent-v0 is not an environment of this worker" in report.failure.message
