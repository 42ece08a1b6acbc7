"""Exact resume of whole trainings: agents for continuous actions and the cross-entropy method."""

from pathlib import Path

import pytest

from tests.support.trainings import TrainingAttempt, make_definition, make_work_order

SMALL = {"batch_size": 16, "hidden_sizes": [16], "learning_starts": 60, "buffer_size": 500}
PENDULUM = {"id": "Pendulum-v1", "num_envs": 2, "max_episode_steps": 37}
CASES = {
    "sac": (SMALL, PENDULUM),
    "td3": ({**SMALL, "policy_delay": 3}, PENDULUM),
    "ddpg": (SMALL, PENDULUM),
    "naf": ({**SMALL, "updates_per_train": 1}, PENDULUM),
    "cem": ({"population_size": 5, "elite_fraction": 0.4}, {"id": "CartPole-v1", "num_envs": 3}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_killed_training_resumes_exactly(tmp_path: Path, name: str) -> None:
    parameters, env = CASES[name]
    document = {**make_definition(), "agent": {"name": name, **parameters}, "env": env}
    order = make_work_order({**document, "loop": {"env_steps": 250, "epoch_env_steps": 100}})
    straight = TrainingAttempt(order, tmp_path / "straight").run()
    killed = TrainingAttempt(order, tmp_path / "killed").run(stop_at=220)
    snapshot, at = killed.get_snapshot("periodic")
    assert 0 < at < 220
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact
    assert resumed.hash_weights() == straight.hash_weights()
    assert (
        sorted(killed.list_points(until=at) + resumed.list_points(), key=repr)
        == straight.list_points()
    )
