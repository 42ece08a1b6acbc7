"""Rows of garage's Trainer about collecting and counters, for both kinds of trainer."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.acceptance.trainer_kit import Kind, make_trainer, read_progress
from tests.support.garage_kit import ConstantPolicy, CountingAlgo, CountingEnv
from tests.support.torch_garage_kit import Reinforce
from workers.snapshot import SnapshotConfig


def test_G5_obtain_episodes(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path)
    batch = trainer.obtain_episodes(0, 12)
    assert batch.lengths.tolist() == [5, 5, 5]
    assert trainer.total_env_steps == 15
    assert batch.last_observations[:, 0].tolist() == [5, 5, 5]
    assert batch.step_types[:5].tolist() == [0, 1, 1, 1, 2]


def test_G6_itr(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    forwarded: list[int] = []
    obtain = algo._sampler.obtain_samples
    algo._sampler.obtain_samples = lambda itr, *args, **kwargs: (
        forwarded.append(itr) or obtain(itr, *args, **kwargs)
    )
    one, two = trainer.obtain_episodes(0, 10), trainer.obtain_episodes(77, 10)
    assert forwarded == [0, 77]
    np.testing.assert_array_equal(one.observations, two.observations)


def test_G7_batch_size(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    with pytest.raises(ValueError, match="no batch_size: give it here, or to train"):
        trainer.obtain_episodes(0)
    lengths: list[int] = []
    algo.body = lambda trainer, _: lengths.append(int(trainer.obtain_episodes(0).lengths.sum()))
    trainer.train(1, 8)
    assert lengths == [10]
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
        trainer.obtain_episodes(0, 0)


def test_G8_agent_update(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path, n_workers=2)
    algo.policy.value = 3.0
    assert set(trainer.obtain_episodes(0, 5).agent_infos["value"]) == {3.0}
    algo.exploration_policy = ConstantPolicy(8.0)
    assert set(trainer.obtain_episodes(0, 5).agent_infos["value"]) == {8.0}
    batch = trainer.obtain_episodes(0, 10, agent_update=[{"value": 1.0}, {"value": 2.0}])
    assert [batch.agent_infos["value"][part][0] for part in batch.slices()] == [1.0, 2.0]
    assert set(
        trainer.obtain_episodes(0, 5, agent_update=ConstantPolicy(9.0)).agent_infos["value"]
    ) == {9.0}
    with pytest.raises(
        ValueError, match="agent_update is a list of 3, but the sampler has 2 workers"
    ):
        trainer.obtain_episodes(0, 5, agent_update=[{"value": 1.0}] * 3)


def test_G9_env_update(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path, n_workers=2)
    assert trainer.obtain_episodes(0, 5).lengths.tolist() == [5, 5]
    assert trainer.obtain_episodes(0, 5, env_update=CountingEnv(3)).lengths.tolist() == [3, 3]
    assert trainer.obtain_episodes(0, 5).lengths.tolist() == [3, 3]
    assert trainer.obtain_episodes(
        0, 5, env_update=[CountingEnv(2), CountingEnv(7)]
    ).lengths.tolist() == [2, 7]
    assert trainer.obtain_episodes(
        0, 5, env_update=lambda old: CountingEnv(old.length + 1)
    ).lengths.tolist() == [3, 8]
    with pytest.raises(ValueError, match="env_update is a list of 1"):
        trainer.obtain_episodes(0, 5, env_update=[CountingEnv(2)])


def test_G10_no_sampler(kind: Kind, tmp_path: Path) -> None:
    trainer = kind(SnapshotConfig(tmp_path))
    trainer.setup(CountingAlgo(None), None)
    with pytest.raises(ValueError, match="CountingAlgo has no sampler"):
        trainer.obtain_episodes(0, 5)


def test_G11_obtain_samples(kind: Kind, tmp_path: Path) -> None:
    env = gym.make("CartPole-v1")
    first, second = (
        make_trainer(kind, tmp_path / name, env=env, algo=Reinforce(env))[0] for name in "ab"
    )
    second._session.algo.policy.load_state_dict(first._session.algo.policy.state_dict())
    batch, samples = first.obtain_episodes(0, 50), second.obtain_samples(0, 50)
    assert len(samples) == len(batch)
    for sample, part in zip(samples, batch.slices(), strict=True):
        for name in ("observations", "next_observations", "actions", "rewards", "step_types"):
            np.testing.assert_array_equal(sample[name], getattr(batch, name)[part])
        assert {"env_infos", "agent_infos", "episode_infos"} < set(sample)
    with pytest.raises(ValueError, match="batch_size"):
        second.obtain_samples(0)


def test_G40_get_env_copy(kind: Kind, tmp_path: Path) -> None:
    env = CountingEnv()
    trainer, _ = make_trainer(kind, tmp_path, env=env)
    env.reset()
    copied = trainer.get_env_copy()
    copied.step(0)
    copied.step(0)
    assert (env.at, copied.at) == (0, 2)
    cart = gym.make("CartPole-v1", render_mode="rgb_array")
    cart.reset(seed=1)
    cart.render()
    trainer.setup(CountingAlgo(None), cart)
    other = trainer.get_env_copy()
    other.reset(seed=2)
    assert other.unwrapped is not cart.unwrapped
    assert not np.array_equal(other.unwrapped.state, cart.unwrapped.state)
    other.close()
    cart.close()
    trainer.setup(CountingAlgo(None), None)
    assert trainer.get_env_copy() is None


def test_G41_total_env_steps(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    assert trainer.total_env_steps == 0

    def body(trainer: Any, _: int) -> None:
        trainer.total_env_steps += 100

    algo.body = body
    trainer.train(1, 10)
    assert trainer.total_env_steps == 110
    assert read_progress(tmp_path)[0]["TotalEnvSteps"] == "110"
    second, _ = make_trainer(kind, tmp_path / "second")
    second.restore(tmp_path)
    assert second.total_env_steps == 110
    with pytest.raises(ValueError, match="total_env_steps"):
        second.total_env_steps = -1
