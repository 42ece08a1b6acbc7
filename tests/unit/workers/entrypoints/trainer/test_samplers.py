"""Samplers: content of a batch, reproducibility, and worker processes."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
import torch

from tests.support.garage_kit import ConstantPolicy, CountingEnv
from tests.support.orphan_check import check_end_with_parent
from tests.support.torch_garage_kit import TorchPolicy
from workers.core.recipes import RecipeError, rebuildable
from workers.entrypoints.trainer_parts.episode import Episode
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch
from workers.entrypoints.trainer_parts.process_sampler import (
    MultiprocessingSampler,
    ProcessSampler,
    SamplerWorkerError,
)
from workers.entrypoints.trainer_parts.samplers import LocalSampler, VecSampler


@rebuildable
class FailingEnv(CountingEnv):
    """An environment that raises, exits or hangs in its third step."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.at == 2 and self.how == "raise":
            raise OSError("the simulator is gone")
        if self.at == 2 and self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.at == 2 and self.how == "hang":
            while True:
                signal.pause()
        return super().step(action)


@pytest.fixture
def close_at_end() -> Iterator[Callable[[Any], Any]]:
    """Returns a function that registers a sampler, which is closed at the end of the test."""
    samplers: list[Any] = []

    def keep(sampler: Any) -> Any:
        samplers.append(sampler)
        return sampler

    yield keep
    for sampler in samplers:
        sampler.shutdown_worker()


def make_cart_pole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", disable_env_checker=True)


def assert_same(one: EpisodeBatch, two: EpisodeBatch) -> None:
    for name in (
        "observations",
        "next_observations",
        "actions",
        "rewards",
        "terminated",
        "truncated",
        "lengths",
        "workers",
    ):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_sampling_time_is_linear_in_the_number_of_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: all episodes were counted again after each round, so 32,000 took 77 s."""
    counted = []
    lengths = Episode.__len__

    def count_and_measure(self: Episode) -> int:
        counted.append(1)
        return lengths(self)

    monkeypatch.setattr(Episode, "__len__", count_and_measure)
    samplers: list[Any] = [
        LocalSampler(ConstantPolicy(), CountingEnv(1), seed=1),
        VecSampler(ConstantPolicy(), CountingEnv(1), n_envs=2, seed=1),
    ]
    for sampler in samplers:
        counted.clear()
        assert len(sampler.obtain_samples(0, 200, None)) == 200
        assert len(counted) < 200 * 5


def test_batches_have_whole_episodes_or_exact_counts() -> None:
    def sample_lengths(unit: Any, count: int, n_workers: int) -> list[int]:
        sampler = LocalSampler(
            ConstantPolicy(), CountingEnv(5), n_workers=n_workers, seed=1, unit=unit
        )
        return sampler.obtain_samples(0, count, None).lengths.tolist()

    assert sample_lengths("whole_episodes", 11, 1) == [5, 5, 5]
    assert sample_lengths("whole_episodes", 11, 2) == [5, 5, 5, 5]
    assert sample_lengths("exact_steps", 11, 1) == [5, 5, 1]
    assert sample_lengths("exact_steps", 11, 2) == [5, 5, 1]
    assert sample_lengths("exact_steps", 3, 8) == [1, 1, 1]
    assert sample_lengths("episodes", 3, 2) == [5, 5, 5]
    with pytest.raises(ValueError, match="unit must be one of"):
        sample_lengths("steps", 3, 2)
    with pytest.raises(ValueError, match="at least 1"):
        sample_lengths("episodes", 0, 2)
    with pytest.raises(ValueError, match="n_workers"):
        sample_lengths("episodes", 1, 0)


def test_each_worker_samples_its_exact_number_of_episodes() -> None:
    sampler = LocalSampler(ConstantPolicy(), CountingEnv(5), n_workers=2, seed=1)
    batch = sampler.obtain_exact_episodes(2, {"value": 3.0})
    assert batch.workers.tolist() == [0, 1, 0, 1]
    assert set(batch.agent_infos["value"]) == {3.0}


def test_a_cut_episode_is_truncated_and_a_terminal_one_is_not() -> None:
    batch = LocalSampler(
        ConstantPolicy(), CountingEnv(5), max_episode_length=3, seed=1
    ).obtain_samples(0, 4, None)
    assert batch.lengths.tolist() == [3, 3]
    assert batch.step_types.tolist() == [0, 1, 3] * 2
    assert not batch.terminated.any()
    assert LocalSampler(ConstantPolicy(), CountingEnv(1), seed=1).obtain_samples(
        0, 1, None
    ).step_types.tolist() == [2]


def test_infos_that_not_every_step_has_are_filled() -> None:
    batch = LocalSampler(ConstantPolicy(), CountingEnv(3), seed=1).obtain_samples(0, 3, None)
    np.testing.assert_array_equal(batch.env_infos["odd"], [1.0, np.nan, 1.0])
    episode = Episode(0)
    for info in (
        {"shape": np.zeros(2)},
        {"shape": np.zeros(3)},
        {"word": "x"},
        {"shape": [[1], [2, 3]]},
    ):
        episode.add(np.zeros(1), 0, 0.0, (info, {}))
    episode.last_observation = np.zeros(1)
    batch = EpisodeBatch.from_episodes([episode])
    assert batch.env_infos["shape"].dtype == object
    assert batch.env_infos["word"].tolist() == [None, None, "x", None]
    assert len(batch.to_list()[0]["env_infos"]["shape"]) == 4


def test_the_same_seed_gives_the_same_episodes_and_leaves_the_global_generators_alone() -> None:
    policy = TorchPolicy(4, 2)
    before = (random.getstate(), torch.get_rng_state())
    one, two = (
        LocalSampler(policy, make_cart_pole(), n_workers=2, seed=7).obtain_samples(0, 50, None)
        for _ in range(2)
    )
    assert_same(one, two)
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    with pytest.raises(AssertionError):
        assert_same(
            one,
            LocalSampler(policy, make_cart_pole(), n_workers=2, seed=8).obtain_samples(0, 50, None),
        )


def test_without_a_seed_the_global_generator_is_used() -> None:
    random.seed(5)
    first = LocalSampler(ConstantPolicy(), CountingEnv()).seed
    random.seed(5)
    assert LocalSampler(ConstantPolicy(), CountingEnv()).seed == first
    assert LocalSampler(ConstantPolicy(), CountingEnv()).seed != first


@pytest.mark.parametrize("kind", ["local", "vec"])
def test_a_sampler_continues_from_its_state(kind: str) -> None:
    def make() -> Any:
        policy = torch.manual_seed(0) and TorchPolicy(4, 2)
        return (
            LocalSampler(policy, make_cart_pole(), seed=3, n_workers=2)
            if kind == "local"
            else VecSampler(policy, make_cart_pole(), n_envs=3, seed=3)
        )

    straight, first, second = make(), make(), make()
    batches = [straight.obtain_samples(itr, 40, None) for itr in range(3)]
    assert_same(first.obtain_samples(0, 40, None), batches[0])
    second.load_state_dict(first.state_dict())
    assert_same(second.obtain_samples(1, 40, None), batches[1])
    second.shutdown_worker()
    assert_same(second.obtain_samples(2, 40, None), batches[2])


def test_a_vectorised_sampler_finishes_what_it_began_in_order() -> None:
    sampler = VecSampler(ConstantPolicy(3.0), CountingEnv(5), n_envs=3, seed=1)
    batch = sampler.obtain_samples(0, 16, {"value": 4.0})
    assert batch.lengths.tolist() == [5] * 6
    assert set(batch.agent_infos["value"]) == {4.0}
    assert batch.observations[:5, 0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="agent_update is a list of 2"):
        sampler.obtain_samples(0, 5, [{"value": 1.0}] * 2)


@pytest.mark.slow
def test_worker_processes_return_the_same_batches_as_this_process(
    close_at_end: Callable[[Any], Any],
) -> None:
    assert MultiprocessingSampler is ProcessSampler
    policy = TorchPolicy(4, 2)
    sampler = close_at_end(ProcessSampler(TorchPolicy(4, 2), make_cart_pole(), n_workers=2, seed=7))
    local = LocalSampler(TorchPolicy(4, 2), make_cart_pole(), n_workers=2, seed=7)
    assert_same(
        sampler.obtain_samples(0, 60, policy.state_dict()),
        local.obtain_samples(0, 60, policy.state_dict()),
    )
    state, pids = sampler.state_dict(), sampler.pids
    sampler.shutdown_worker()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert_same(
        sampler.obtain_samples(1, 60, policy.state_dict()),
        local.obtain_samples(1, 60, policy.state_dict()),
    )
    other = close_at_end(ProcessSampler(TorchPolicy(4, 2), make_cart_pole(), n_workers=2, seed=1))
    other.load_state_dict(state)
    batch = other.obtain_samples(
        1,
        60,
        [policy.state_dict(), TorchPolicy(4, 2)],
        gym.make("CartPole-v1", max_episode_steps=4),
    )
    assert batch.lengths.tolist() == [4] * 16


def test_closures_are_refused_before_anything_starts() -> None:
    class LocalPolicy(ConstantPolicy):
        pass

    with pytest.raises(RecipeError, match=r"agent: .*LocalPolicy has no recipe"):
        ProcessSampler(LocalPolicy(), make_cart_pole())
    with pytest.raises(RecipeError, match="env: an argument of TransformReward is no plain data"):
        ProcessSampler(
            ConstantPolicy(), gym.wrappers.TransformReward(make_cart_pole(), lambda reward: reward)
        )


@pytest.mark.slow
def test_a_worker_that_raises_or_dies_is_a_clear_error(close_at_end: Callable[[Any], Any]) -> None:
    raising = close_at_end(
        ProcessSampler(ConstantPolicy(), FailingEnv("raise"), n_workers=2, seed=1)
    )
    with pytest.raises(
        SamplerWorkerError, match=r"(?s)sampler worker 0 raised.*the simulator is gone"
    ):
        raising.obtain_samples(0, 5, None)
    assert len(raising.state_dict()["workers"]) == 2
    dying = close_at_end(ProcessSampler(ConstantPolicy(), FailingEnv("die"), n_workers=1, seed=1))
    with pytest.raises(
        SamplerWorkerError, match=r"sampler worker 0 \(process \d+\) was ended by SIGKILL"
    ):
        dying.obtain_samples(0, 5, None)
    with pytest.raises(SamplerWorkerError, match="SIGKILL"):
        dying.obtain_samples(0, 5, None)
    assert dying.obtain_samples(0, 5, None, CountingEnv(2)).lengths.tolist() == [2, 2, 2]


def test_workers_end_with_their_parent_in_the_middle_of_an_episode(tmp_path: Path) -> None:
    def run_parent(tell: Callable[[tuple[int, ...]], None]) -> None:
        sampler = ProcessSampler(ConstantPolicy(), FailingEnv("hang"), n_workers=2, seed=1)
        sampler.state_dict()
        sampler._running_pool()
        tell(sampler.pids)
        sampler.obtain_samples(0, 5, None)

    check_end_with_parent(tmp_path / "pids", run_parent, 2)
