"""Resume is exact: 2N in one go is N, an end, and N more, with the same weights and the same points."""

from pathlib import Path

import pytest

from tests.support.trainings import Trained, definition, load, work_order

CASES = [
    ("dqn", 1, {}),
    ("dqn", 3, {"hooks": [{"name": "nan_guard"}, {"name": "learning_rate_schedule", "env_steps": 500}]}),
    ("ppo", 1, {}),
    ("ppo", 4, {"env": {"id": "Pendulum-v1", "num_envs": 4, "max_episode_steps": 37}}),
]


@pytest.mark.parametrize(("agent", "num_envs", "sections"), CASES)
def test_a_killed_training_resumes_exactly(tmp_path: Path, agent: str, num_envs: int, sections: dict[str, object]) -> None:
    order = work_order(definition(agent, num_envs, **sections))
    straight = Trained(order, tmp_path / "straight").run()
    killed = Trained(order, tmp_path / "killed").run(stop_at=430)
    snapshot, at = killed.snapshot_at("periodic")
    assert 0 < at < 430
    episodes = load(order, snapshot).state["collector"]["episodes"]
    assert any(not episode["over"] and episode["length"] > 0 for episode in episodes), "the snapshot lies within episodes"
    resumed = Trained(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact
    assert resumed.weights() == straight.weights()
    assert sorted(killed.points(until=at) + resumed.points(), key=repr) == straight.points()


@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_a_pause_at_any_step_changes_nothing(tmp_path: Path, agent: str) -> None:
    order = work_order(definition(agent, 2))
    straight = Trained(order, tmp_path / "straight").run()
    paused = Trained(order, tmp_path / "paused").run(pause_at=307)
    snapshot, at = paused.snapshot_at("stop")
    resumed = Trained(order, tmp_path / "resumed", snapshot).run()
    assert resumed.weights() == straight.weights()
    assert sorted(paused.points() + resumed.points(), key=repr) == straight.points()
    assert max(row[1] for row in paused.points()) <= at < 600
