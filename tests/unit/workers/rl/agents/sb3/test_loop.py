"""Stable-Baselines3 algorithms train in their own loop.

Evaluations, snapshots and budgets work as for every other agent.
"""

import itertools
import json
import pickletools
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

import tests.support.misbehaving_envs  # noqa: F401 - registers
from tests.support.trainings import load_order_snapshot, make_work_order
from tests.unit.workers.rl.agents.sb3.sb3_kit import ALGORITHMS, Sb3TrainingAttempt, make_document
from workers.core.errors import DefinitionError
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.core.types import StopReason
from workers.rl.envs.resumable_episode import EpisodeEnv


def run_training(tmp_path: Path, definition, snapshot=None, **stop) -> Sb3TrainingAttempt:
    return Sb3TrainingAttempt(make_work_order(definition), tmp_path / "snapshots", snapshot).run(
        **stop
    )


def list_records(run: Sb3TrainingAttempt, kind: str) -> list[dict]:
    return [record for record in run.dump_records() if record["type"] == kind]


def get_update_count(algorithm: str) -> int:
    """Returns the number of optimiser steps within 200 env_steps.

    It is one per step after the warm-up of 40 steps, or follows from the rollouts.
    """
    return {
        "A2C": 200 // 8,
        "PPO": (200 // 32) * 2,
        "DQN": (200 - 40) // 4,
        "TD3": (200 - 40) // 2,
    }.get(algorithm, 200 - 40)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_evaluations_and_snapshots_are_made_at_their_steps(algorithm, tmp_path: Path) -> None:
    run = run_training(tmp_path, make_document(algorithm))
    assert run.result.reason is StopReason.BUDGET
    assert (run.clock.env_steps, run.clock.updates) == (200, get_update_count(algorithm))
    assert [row["env_step"] for row in list_records(run, "evaluation")] == [75, 150, 200]
    assert [row["total_env_steps"] for row in list_records(run, "experiment_stats")] == [100, 200]
    assert {(row["env_step"], row["reason"]) for row in list_records(run, "snapshot")} >= {
        (130, "periodic"),
        (200, "finish"),
    }
    losses = {
        row["series"] for row in list_records(run, "points") if row["series"].startswith("loss/")
    }
    assert losses == {name for name in run.agent.report_names if name.startswith("loss/")}
    episodes = list_records(run, "episodes")
    assert sum(length for row in episodes for length in row["episode_length"]) <= 200


@pytest.mark.parametrize("algorithm", ["DQN", "PPO"])
def test_the_weights_equal_those_of_the_library_alone(algorithm, tmp_path: Path) -> None:
    """Evaluations, snapshots and the engine do not change the training.

    The weights are those of a plain `learn` on the same episodes.
    """
    run = run_training(
        tmp_path, make_document(algorithm, 2, loop={"env_steps": 256, "epoch_env_steps": 100})
    )

    class SeededEnv(gym.Wrapper):
        def __init__(self, index: int) -> None:
            super().__init__(EpisodeEnv(gym.make("CartPole-v1", max_episode_steps=-1), index, 30))
            self.index, self.episodes = index, itertools.count()

        def reset(self, *, seed=None, options=None):
            return self.env.reset(
                seed=derive_seed(7, "env", self.index, next(self.episodes), bits=ENV_SEED_BITS)
            )

        def step(self, action):
            return self.env.step(action)

    plain = getattr(stable_baselines3, algorithm)(
        "MlpPolicy",
        DummyVecEnv([lambda: SeededEnv(0), lambda: SeededEnv(1)]),
        seed=derive_seed(7, "agent/sb3", bits=31),
        device="cpu",
        **ALGORITHMS[algorithm][1],
    )
    plain.learn(256)
    ours = run.agent.state_dict()["parameters"]["policy"]
    assert plain.num_timesteps == run.clock.env_steps == 256
    for name, value in plain.policy.state_dict().items():
        torch.testing.assert_close(ours[name], value, rtol=0, atol=0)


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    one, other = (
        run_training(tmp_path / name, make_document("PPO", 2)) for name in ("one", "other")
    )
    assert one.hash_weights() == other.hash_weights()
    assert one.list_points() == other.list_points()


@pytest.mark.parametrize("algorithm", ["DQN", "PPO", "SAC"])
def test_a_pause_is_followed_by_a_statistical_resume(algorithm, tmp_path: Path) -> None:
    definition = make_document(algorithm)
    paused = run_training(tmp_path, definition, pause_at=99)
    assert paused.result.reason is StopReason.PAUSE
    directory, at = paused.get_snapshot("stop")
    assert at == paused.clock.env_steps == 100
    state = load_order_snapshot(make_work_order(definition), directory).state
    assert state["agent"]["counters"]["num_timesteps"] == 100
    assert state["memory"].get("pos", 100) == 100

    fresh = Sb3TrainingAttempt(make_work_order(definition), tmp_path / "fresh").run(pause_at=0)
    fresh.agent.load_state_dict(state["agent"])
    assert fresh.agent._model.action_space.sample() == paused.agent._model.action_space.sample()

    resumed = run_training(tmp_path, definition, directory)
    assert resumed.exact is False
    assert resumed.result.reason is StopReason.BUDGET
    assert resumed.clock.env_steps == 200
    assert [row["env_step"] for row in list_records(resumed, "evaluation")] == [150, 200]
    assert [note["code"] for note in list_records(resumed, "note")] == ["resume_statistical"]
    assert resumed.clock.updates > paused.clock.updates


def test_a_snapshot_restores_the_whole_state(tmp_path: Path) -> None:
    definition = make_document("SAC")
    directory, _ = run_training(tmp_path, definition, pause_at=99).get_snapshot("stop")
    saved = load_order_snapshot(make_work_order(definition), directory).state
    resumed = run_training(
        tmp_path,
        {**definition, "loop": {**definition["loop"], "env_steps": 200}},
        directory,
        pause_at=100,
    )
    again = load_order_snapshot(make_work_order(definition), resumed.get_snapshot("stop")[0]).state
    assert again["agent"]["counters"]["_episode_num"] >= saved["agent"]["counters"]["_episode_num"]
    for name in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(
            again["memory"]["arrays"][name][:100], saved["memory"]["arrays"][name][:100]
        )


def test_without_a_saved_memory_learning_waits_for_the_warm_up(tmp_path: Path) -> None:
    definition = make_document("DQN", snapshot={"every_env_steps": None, "memory": "none"})
    paused = run_training(tmp_path, definition, pause_at=99)
    resumed = run_training(tmp_path, definition, paused.get_snapshot("stop")[0])
    assert {note["code"] for note in list_records(resumed, "note")} == {"resume_statistical"}
    assert resumed.clock.updates - paused.clock.updates == (200 - 100 - 40) // 4
    assert resumed.agent._model.gradient_steps == 1


def test_several_environments_and_an_episode_budget(tmp_path: Path) -> None:
    run = run_training(
        tmp_path,
        make_document(
            "PPO", 4, evaluation={"every_env_steps": 50, "episodes": 1, "during_episode": False}
        ),
    )
    assert run.clock.env_steps == 200
    ends = {step for row in list_records(run, "episodes") for step in row["env_step"]}
    assert {row["env_step"] for row in list_records(run, "evaluation") if not row["final"]} <= ends


@pytest.mark.parametrize(("loop", "at"), [({"updates": 10}, 80), ({"episodes": 3}, None)])
def test_other_budgets_end_the_training(loop, at, tmp_path: Path) -> None:
    run = run_training(tmp_path, make_document("A2C", loop={"env_steps": 10_000, **loop}))
    assert run.result.reason is StopReason.BUDGET
    assert run.clock.env_steps == at or run.clock.episodes == loop["episodes"]


def test_a_success_score_ends_the_training(tmp_path: Path) -> None:
    run = run_training(
        tmp_path, make_document("A2C", stop={"success_score": 1.0, "success_evaluations": 2})
    )
    assert run.result.reason is StopReason.SUCCESS_SCORE
    assert run.clock.env_steps == 150
    again = run_training(
        tmp_path,
        make_document("A2C", stop={"success_score": 1.0, "success_evaluations": 2}),
        run.get_snapshot("finish")[0],
    )
    assert (again.result.reason, again.clock.env_steps) == (StopReason.SUCCESS_SCORE, 150)


def test_a_schedule_moves_the_learning_rate(tmp_path: Path) -> None:
    hooks = [{"name": "learning_rate_schedule", "final_value": 0.0, "env_steps": 200}]
    run = run_training(tmp_path, make_document("DQN", hooks=hooks))
    assert run.agent.learning_rate == pytest.approx(0.0, abs=1e-6)
    assert run.agent._model.policy.optimizer.param_groups[0]["lr"] < 1e-5


def test_a_snapshot_holds_no_pickle(tmp_path: Path) -> None:
    run = run_training(tmp_path, make_document("SAC", loop={"env_steps": 50}))
    files = [path for path in run.snapshots.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".safetensors", ".npz", ".json"}
    for path in files:
        contents = [path.read_bytes()]
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                assert all(name.endswith(".npy") for name in archive.namelist())
                contents = [archive.read(name) for name in archive.namelist()]
                assert not any(b"'descr': '|O'" in content for content in contents)
        for content in contents:
            assert not _is_pickle(content), path
    state = json.loads((run.get_snapshot("finish")[0] / "state.json").read_bytes())
    assert set(state["agent"]["parameters"]) == {
        "policy",
        "actor.optimizer",
        "critic.optimizer",
        "ent_coef_optimizer",
    }


def _is_pickle(content: bytes) -> bool:
    try:
        for _ in pickletools.genops(content):
            pass
    except Exception:  # noqa: BLE001 - anything else than a pickle
        return False
    return True


def test_features_that_need_the_engines_loop_are_refused(tmp_path: Path) -> None:
    from workers.entrypoints.agent_algorithm import AgentAlgorithm

    algorithm = AgentAlgorithm({"name": "sb3", "algorithm": "A2C"}, "CartPole-v1")
    experience = algorithm.collector.collect(algorithm.agent.collect_plan)
    with pytest.raises(DefinitionError, match="loop of its own"):
        algorithm.agent.observe(experience)
