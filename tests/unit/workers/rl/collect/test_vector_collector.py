"""The vector collector: shapes, flags, seeds and whole episodes."""

from typing import Any

import numpy as np
import pytest

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import EnvDefinition
from workers.core.types import CollectPlan
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_vector


class ConstantActionAgent:
    """An agent that always chooses action 1."""

    def __init__(self) -> None:
        self.lost: list[Any] = []

    def act(self, observation: Any, *, explore: bool) -> Any:
        assert explore
        return np.ones(len(observation), np.int64)

    def mark_lost_episodes(self, lost: Any) -> None:
        self.lost.append(lost.tolist())


def make_collector(length: int = 0, num_envs: int = 2, **options: Any) -> VectorCollector:
    spec = EnvDefinition(
        id="OddWalk-v0",
        num_envs=num_envs,
        kwargs={"length": length, "random_length": options.pop("random_length", False)},
        **options,
    )
    return VectorCollector(make_vector(spec), ConstantActionAgent(), seed=3)


def test_experience_is_time_major_and_keeps_the_true_successor() -> None:
    experience = make_collector(length=3).collect(CollectPlan(vector_steps=5))
    assert experience.observation.shape == (5, 2, 2)
    assert experience.observation[:, 0, 1].tolist() == [0, 1, 2, 0, 1]
    assert experience.next_observation[:, 0, 1].tolist() == [1, 2, 3, 1, 2]
    assert experience.terminated[:, 0].tolist() == [False, False, True, False, False]
    assert not experience.truncated.any()
    assert experience.reward.dtype == np.float64
    assert experience.action.dtype == np.int64
    assert experience.env_steps == 10
    assert [
        (end.env_index, end.vector_step, end.episode_return, end.episode_length)
        for end in experience.episodes
    ] == [
        (0, 2, 3.0, 3),
        (1, 2, 3.0, 3),
    ]


def test_the_last_observation_can_be_seen_before_the_lazy_reset() -> None:
    made = make_collector(length=3)
    first = made.collect(CollectPlan(vector_steps=3))
    assert first.next_observation[-1, 0, 1] == 3
    assert made.state_dict()["over"].all()
    assert made.collect(CollectPlan(vector_steps=1)).observation[0, 0, 1] == 0


def test_truncation_is_distinguished_from_termination() -> None:
    experience = make_collector(max_episode_steps=2, num_envs=1).collect(
        CollectPlan(vector_steps=2)
    )
    assert experience.truncated[:, 0].tolist() == [False, True]
    assert not experience.terminated.any()
    assert not experience.episodes[0].terminated


def test_an_episode_depends_on_seed_environment_and_number_alone() -> None:
    together = (
        make_collector(length=2, num_envs=3)
        .collect(CollectPlan(vector_steps=4))
        .observation[::2, :, 0]
    )
    assert len(np.unique(together)) == 6
    again = (
        make_collector(length=2, num_envs=2)
        .collect(CollectPlan(vector_steps=4))
        .observation[::2, :, 0]
    )
    assert np.array_equal(together[:, :2], again)


def test_a_minimum_of_env_steps_is_rounded_up_to_whole_vector_steps() -> None:
    assert make_collector().collect(CollectPlan(env_steps=5)).env_steps == 6


@pytest.mark.parametrize("num_envs", [1, 2, 5])
def test_whole_episodes_are_counted_by_their_start(num_envs: int) -> None:
    made = make_collector(num_envs=num_envs, random_length=True)
    made.collect(CollectPlan(vector_steps=1))
    experience = made.collect(CollectPlan(episodes=4))
    assert len(experience.episodes) == 4
    assert experience.active is not None
    assert (
        experience.env_steps
        == sum(end.episode_length for end in experience.episodes)
        == experience.active.sum()
    )
    assert (experience.terminated & experience.active).sum() == 4


def test_whole_episodes_are_collected_until_there_are_enough_env_steps() -> None:
    experience = make_collector(num_envs=1, random_length=True).collect(
        CollectPlan(env_steps=20, needs_whole_episodes=True)
    )
    lengths = [end.episode_length for end in experience.episodes]
    assert sum(lengths) >= 20 > sum(lengths[:-1])


def test_an_unrepeatable_environment_begins_its_episode_again_with_the_next_number() -> None:
    actor = ConstantActionAgent()

    def make_unseeded_collector() -> VectorCollector:
        return VectorCollector(
            make_vector(EnvDefinition(id="OddUnseeded-v0", num_envs=2)), actor, seed=3
        )

    first = make_unseeded_collector()
    first.collect(CollectPlan(vector_steps=5))
    second = make_unseeded_collector()
    report = second.restore(first.state_dict())
    assert actor.lost == [[True, True]]
    assert not report.is_exact
    assert report.notes[0][0] == "env_not_deterministic"
    experience = second.collect(CollectPlan(vector_steps=1))
    assert experience.observation[0, :, 1].tolist() == [0.0, 0.0]
    assert second.state_dict()["begun"].tolist() == [2, 2]
