"""Composite observations as flat vectors, and composite actions as integer arrays."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import EnvDefinition
from tests.support.misbehaving_envs import NestedSpacesEnv
from workers.core.types import CollectPlan
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_vector
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.space_arrays import Flattener, action_layout, array_layout
from workers.rl.envs.vector import SerialVector

SPACE = NestedSpacesEnv.observation_space
DEEP = spaces.Tuple(
    (
        spaces.Discrete(4, start=2),
        spaces.Dict(
            {
                "b": spaces.Box(0, 255, (2, 3), np.uint8),
                "a": spaces.MultiDiscrete([[2, 3], [1, 2]], start=[[1, 0], [5, -1]]),
            }
        ),
        spaces.Tuple(
            (spaces.Tuple((spaces.MultiBinary((2, 2)),)), spaces.Box(-1, 1, (), np.float64))
        ),
    )
)


class ConstantActionAgent:
    """An agent that takes the same action in every environment."""

    def act(self, observation: Any, *, explore: bool) -> Any:
        assert explore
        return np.tile(np.array([1, 1]), (len(observation), 1))


@pytest.mark.parametrize("space", [SPACE, DEEP], ids=["dict", "tuple"])
def test_the_flat_vector_equals_gymnasiums(space: Any) -> None:
    space.seed(3)
    flat = Flattener(space)
    for _ in range(20):
        element = space.sample()
        vector = flat(element)
        assert vector.dtype == np.float32
        assert np.array_equal(vector, flatten(space, element).astype(np.float32))
        assert flat.space().contains(vector)
    assert array_layout(space) == ((flat.size,), np.float32)
    assert flat.space() == gym.spaces.Box(*(np.float32(bound) for bound in _get_bounds(space)))


def _get_bounds(space: Any) -> Any:
    flattened = gym.spaces.utils.flatten_space(space)
    return flattened.low, flattened.high


@pytest.mark.parametrize(
    ("space", "layout"),
    [
        (spaces.Discrete(3), ((), np.int64)),
        (spaces.MultiDiscrete([3, 2]), ((2,), np.int64)),
        (spaces.MultiBinary(4), ((4,), np.int64)),
        (spaces.Box(-1, 1, (2, 3), np.float32), ((2, 3), np.float32)),
    ],
)
def test_actions_of_discrete_kinds_are_stored_as_int64(space: Any, layout: Any) -> None:
    assert action_layout(space) == layout


@pytest.mark.parametrize(
    "space",
    [spaces.Dict({"a": spaces.Discrete(2)}), spaces.Tuple((spaces.Discrete(2),)), spaces.Text(3)],
)
def test_actions_that_are_no_arrays_are_refused(space: Any) -> None:
    with pytest.raises(TypeError, match="cannot be stored as one array"):
        action_layout(space)


@pytest.mark.parametrize(
    "space", [spaces.Sequence(spaces.Discrete(2)), spaces.Tuple((spaces.Text(2),)), spaces.Dict({})]
)
def test_observations_that_are_no_arrays_are_refused(space: Any) -> None:
    with pytest.raises(TypeError):
        array_layout(space)


@pytest.mark.parametrize(
    ("vectorization", "binary"),
    [("sync", False), ("sync", True), pytest.param("async", True, marks=pytest.mark.slow)],
)
def test_a_vector_shows_the_declared_space_and_flat_arrays(
    vectorization: Any, binary: bool
) -> None:
    spec = EnvDefinition(
        id="OddNestedSpaces-v0", num_envs=2, vectorization=vectorization, kwargs={"binary": binary}
    )
    vector, other = make_vector(spec), make_vector(spec)
    assert vector.single_observation_space == SPACE
    assert vector.begin(np.ones(2, np.bool_), [1, 2]).shape == (2, 16)
    actions = np.array([[1, 0], [1, 1]], np.int64)
    for _ in range(3):
        observation, reward, _, _ = vector.advance(actions)
    assert (observation.dtype, reward.tolist()) == (np.float32, [1.0, 1.0])
    restored = other.restore_episodes(vector.save_episodes())
    assert np.array_equal(np.stack([one.observation for one in restored]), observation)
    assert np.array_equal(vector.advance(actions)[0], other.advance(actions)[0])
    vector.close()
    other.close()


def test_experience_has_vectors_and_int64_actions() -> None:
    spec = EnvDefinition(id="OddNestedSpaces-v0", num_envs=2, kwargs={"binary": True})
    experience = VectorCollector(make_vector(spec), ConstantActionAgent(), seed=1).collect(
        CollectPlan(vector_steps=5)
    )
    assert (experience.observation.shape, experience.observation.dtype) == ((5, 2, 16), np.float32)
    assert (experience.action.shape, experience.action.dtype) == ((5, 2, 2), np.int64)
    assert np.array_equal(experience.observation[1:], experience.next_observation[:-1])


def test_composite_observations_are_flattened_for_built_in_agents() -> None:
    env = NestedSpacesEnv()
    vector = SerialVector([lambda: EpisodeEnv(env, 0, None)])
    vector.begin(np.array([True]), [4])
    vector.advance(np.array([[2, 1]]))
    assert env.taken.tolist() == [2, 1]
    assert vector.single_observation_space == SPACE


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (0,)),
        spaces.Box(-1, 1, (3, 0)),
        spaces.Dict({"a": spaces.Box(0, 1, (0,))}),
    ],
)
def test_an_empty_observation_space_is_refused(space) -> None:
    """Regression: it raised a ZeroDivisionError when weights were initialised."""
    with pytest.raises(TypeError, match="at least one number"):
        array_layout(space)
