"""Vector environments, and how they restore the episodes in progress."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import DEFAULT_EPISODE_STEPS, EnvDefinition
from tests.support.misbehaving_envs import ActionChangingEnv
from workers.core.errors import DefinitionError, EnvironmentFailedError, PartNotFoundError
from workers.rl.envs.factory import find_cut, make_rendered, make_vector
from workers.rl.envs.resumable_episode import EpisodeEnv


def make_spec(name: str, **options: Any) -> EnvDefinition:
    return EnvDefinition(id=name, **options)


def begin_all(vector: Any) -> Any:
    return vector.begin(
        np.ones(vector.num_envs, np.bool_), list(range(10, 10 + vector.num_envs))
    ).copy()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_a_time_limit_truncates_and_a_terminal_state_does_not(vectorization: str) -> None:
    vector = make_vector(
        make_spec(
            "OddWalk-v0",
            num_envs=2,
            kwargs={"length": 3},
            max_episode_steps=3,
            vectorization=vectorization,
        )
    )
    longer = make_vector(make_spec("OddWalk-v0", num_envs=1, max_episode_steps=2))
    begin_all(vector)
    for _ in range(3):
        _, reward, terminated, truncated = vector.advance(np.array([1, 2]))
    assert reward.tolist() == [1.0, 2.0]
    assert terminated.tolist() == [True, True]
    assert truncated.tolist() == [True, True]
    begin_all(longer)
    longer.advance(np.array([0]))
    assert [flag.tolist() for flag in longer.advance(np.array([0]))[2:]] == [[False], [True]]
    vector.close()
    longer.close()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_episodes_that_nothing_limits_are_cut(vectorization: str) -> None:
    spec = make_spec("CliffWalking-v1", vectorization=vectorization)
    vector = make_vector(spec)
    begin_all(vector)
    up = np.array([0])  # against the wall, for ever
    for _ in range(DEFAULT_EPISODE_STEPS - 1):
        _, _, terminated, truncated = vector.advance(up)
        assert not terminated[0]
        assert not truncated[0]
    assert [flag.tolist() for flag in vector.advance(up)[2:]] == [[False], [True]]
    vector.close()


def test_episodes_that_are_played_or_filmed_are_cut_too() -> None:
    env = make_rendered(make_spec("CliffWalking-v1"))
    env.reset(seed=1)
    ends = [env.step(0)[2:4] for _ in range(DEFAULT_EPISODE_STEPS)]
    assert ends[-2:] == [(False, False), (False, True)]
    env.close()


@pytest.mark.parametrize(
    ("spec", "max_episode_steps", "expected"),
    [
        (make_spec("CliffWalking-v1"), None, DEFAULT_EPISODE_STEPS),
        (make_spec("CliffWalking-v1"), 50, None),
        (make_spec("CliffWalking-v1", max_episode_steps=50), None, None),
        (make_spec("CartPole-v1"), None, None),
        (make_spec("ALE/Pong-v5"), None, None),
    ],
)
def test_episodes_are_cut_where_neither_definition_nor_environment_limits_them(
    spec: EnvDefinition, max_episode_steps: int | None, expected: int | None
) -> None:
    assert find_cut(spec, max_episode_steps) == expected


def test_an_ended_slot_stays_as_it_is_until_its_reset() -> None:
    vector = make_vector(make_spec("OddWalk-v0", num_envs=2, kwargs={"length": 2}))
    begin_all(vector)
    vector.advance(np.array([1, 1]))
    observation = vector.advance(np.array([1, 1]))[0].copy()
    again = vector.advance(np.array([2, 2]))
    assert np.array_equal(again[0], observation)
    assert again[1].tolist() == [0.0, 0.0]
    vector.begin(np.array([True, False]), [99, 0])
    after = vector.advance(np.array([2, 2]))
    assert after[1].tolist() == [2.0, 0.0]
    assert after[2].tolist() == [False, True]
    vector.close()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_the_same_seed_begins_the_same_episode(vectorization: str) -> None:
    vector = make_vector(make_spec("CartPole-v1", num_envs=2, vectorization=vectorization))
    first = begin_all(vector)
    vector.begin(np.ones(2, np.bool_), [10, 99])
    second = vector.begin(np.array([False, True]), [0, 11])
    assert np.array_equal(first, second)
    vector.close()


@pytest.mark.parametrize(
    ("name", "vectorization"),
    [
        ("CartPole-v1", "sync"),
        ("Pendulum-v1", "sync"),
        ("Pendulum-v1", "async"),
        ("OddSelfSaving-v0", "sync"),
        ("OddSelfSaving-v0", "async"),
    ],
)
def test_a_running_episode_is_restored(name: str, vectorization: str) -> None:
    made = make_spec(name, num_envs=2, vectorization=vectorization)
    vector, other = make_vector(made), make_vector(made)
    begin_all(vector)
    space = vector.single_action_space
    space.seed(3)
    for _ in range(7):
        observation = vector.advance(np.stack([np.asarray(space.sample()) for _ in range(2)]))[0]
    restored = other.restore_episodes(vector.save_episodes())
    assert all(result.is_reproduced for result in restored)
    assert np.array_equal(np.stack([result.observation for result in restored]), observation)
    actions = np.stack([np.asarray(space.sample()) for _ in range(2)])
    if name != "OddSelfSaving-v0":
        assert all(
            np.array_equal(a, b)
            for a, b in zip(vector.advance(actions), other.advance(actions), strict=True)
        )
    else:
        assert other.advance(actions)[0][:, 1].tolist() == [8.0, 8.0]
    vector.close()
    other.close()


def test_an_environment_that_is_not_reproducible_is_detected() -> None:
    vector, other = (make_vector(make_spec("OddUnseeded-v0", num_envs=2)) for _ in range(2))
    begin_all(vector)
    vector.advance(np.array([0, 0]))
    restored = other.restore_episodes(vector.save_episodes())
    assert [result.is_reproduced for result in restored] == [False, False]
    assert [result.observation for result in restored] == [None, None]


def test_an_ended_episode_is_not_restored() -> None:
    vector, other = (make_vector(make_spec("OddWalk-v0", kwargs={"length": 1})) for _ in range(2))
    begin_all(vector)
    vector.advance(np.array([0]))
    assert other.restore_episodes(vector.save_episodes()) == [(None, True)]


def test_an_exception_of_an_environment_is_reported_as_its_failure() -> None:
    vector = make_vector(make_spec("OddRaising-v0"))
    begin_all(vector)
    vector.advance(np.array([0]))
    vector.advance(np.array([0]))
    with pytest.raises(EnvironmentFailedError, match="step 3: ValueError: the robot fell over"):
        vector.advance(np.array([0]))


@pytest.mark.parametrize(
    ("made", "error", "text"),
    [
        (make_spec("CartPole-v999"), PartNotFoundError, "not an environment of this worker"),
        (make_spec("Nowhere-v0"), PartNotFoundError, "not an environment of this worker"),
        (make_spec("CartPole-v1", kwargs={"gravity": 1.0}), DefinitionError, "env.kwargs"),
        (
            make_spec("OddText-v0"),
            DefinitionError,
            "env.id OddText-v0, observation_space: Text spaces, here a.0, cannot be part",
        ),
    ],
)
def test_an_environment_that_cannot_be_made_says_why(
    made: EnvDefinition, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_vector(made)


def test_a_vector_is_a_gymnasium_vector_environment() -> None:
    vector: Any = make_vector(make_spec("CartPole-v1", num_envs=3))
    observation, _ = vector.reset(seed=5)
    assert vector.observation_space.contains(observation)
    stepped = vector.step(np.array([0, 1, 0]))
    assert stepped[0].shape == (3, 4)
    assert np.array_equal(
        vector.reset(seed=[5, 6, 7], options={"reset_mask": np.array([True, False, True])})[0][1],
        stepped[0][1],
    )
    assert vector.metadata["autoreset_mode"].value == "Disabled"
    vector.close()


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (2,), np.float32),
        spaces.MultiDiscrete([5, 5]),
        spaces.MultiBinary(2),
    ],
    ids=str,
)
def test_an_environment_that_changes_its_action_resumes_exactly(space: Any) -> None:
    space.seed(1)
    envs = [EpisodeEnv(ActionChangingEnv(space)) for _ in range(2)]
    envs[0].reset(seed=1)
    actions = [space.sample() for _ in range(5)]
    passed = [action.copy() for action in actions]
    for action in passed:
        observation = envs[0].step(action)[0]
    assert all(np.array_equal(*pair) for pair in zip(actions, passed, strict=True))
    restored = envs[1].restore_episode([envs[0].save_episode()])
    assert restored.is_reproduced
    assert np.array_equal(restored.observation, observation)
