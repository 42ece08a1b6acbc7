"""Environments that the caller of a training function provides."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper

from tests.support.misbehaving_envs import (
    ActionChangingEnv,
    NestedSpacesEnv,
    RaggedInfoEnv,
    ReturningEnv,
    TextEnv,
    UnseededEnv,
)
from tests.support.pfrl_agents import ScriptedAgent
from tests.support.recording_env import (
    EpisodeLengthsEnv,
    RepeatingEnv,
    SeededEpisodesEnv,
    StatisticsEnv,
)
from workers.core.errors import EnvironmentFailedError
from workers.entrypoints.functional import train_agent
from workers.estimators.environments import check_env
from workers.rl.envs.caller_envs import (
    as_vector,
    clear_statistics,
    copy_of,
    statistics_of,
)
from workers.rl.envs.env_checks import CHECKED_STEPS
from workers.rl.envs.gym_vector import GymVector
from workers.rl.envs.resumable_episode import EpisodeEnv

ALL = np.array([True, True])


def make_jointly_stepped_envs(*envs: EpisodeLengthsEnv) -> VectorWrapper:
    """Returns environments that can only be stepped together."""
    return VectorWrapper(
        SyncVectorEnv([lambda one=one: one for one in envs], autoreset_mode=AutoresetMode.DISABLED)
    )


def test_environments_of_a_list_must_have_the_same_spaces() -> None:
    env = EpisodeLengthsEnv()
    with pytest.raises(ValueError, match="holds one environment twice"):
        as_vector([env, env])
    with pytest.raises(ValueError, match="spaces of environment 1"):
        as_vector([env, UnseededEnv()])
    with pytest.raises(TypeError, match="env: a list is no"):
        as_vector([])
    with pytest.raises(TypeError, match=r"Text spaces, here a\.0, cannot be part"):
        EpisodeEnv(TextEnv(), 0, None)


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Dict({"a": gym.spaces.Discrete(2)}), gym.spaces.Tuple([gym.spaces.Discrete(2)])],
)
def test_composite_observation_spaces_are_refused(space: Any) -> None:
    """The caller's agent would receive a flat vector instead of the parts that it expects."""

    class CompositeEnv(NestedSpacesEnv):
        observation_space = space

    vector = SyncVectorEnv([CompositeEnv], autoreset_mode=AutoresetMode.DISABLED)
    for env in (CompositeEnv(), [CompositeEnv(), CompositeEnv()], vector, VectorWrapper(vector)):
        with pytest.raises(
            TypeError,
            match=rf"env: observations of a {type(space).__name__} space .*FlattenObservation",
        ):
            as_vector(env)
    with pytest.raises(TypeError, match="not flattened"):
        train_agent(ScriptedAgent(), CompositeEnv(), 5, "nowhere")
    with pytest.raises(TypeError, match="not flattened"):
        check_env(CompositeEnv())


def test_environments_of_a_sync_vector_are_stepped_one_by_one() -> None:
    env = EpisodeLengthsEnv()
    assert not isinstance(
        as_vector(SyncVectorEnv([lambda: env], autoreset_mode=AutoresetMode.DISABLED)), GymVector
    )


def test_a_vector_truncates_at_requested_resets_and_at_its_limit() -> None:
    vector = as_vector(
        make_jointly_stepped_envs(
            EpisodeLengthsEnv((0,), needs_reset_at=2), EpisodeLengthsEnv((0,))
        ),
        max_episode_steps=3,
    )
    assert isinstance(vector, GymVector)
    vector.begin(ALL, [1, 2])
    actions = np.zeros(2, np.int64)
    assert [vector.advance(actions)[3].tolist() for _ in range(3)] == [
        [False, False],
        [True, False],
        [True, True],
    ]


def test_an_inactive_slot_does_not_change() -> None:
    waiting, running = EpisodeLengthsEnv((1,)), EpisodeLengthsEnv((5,))
    vector = as_vector(make_jointly_stepped_envs(waiting, running))
    vector.begin(ALL, [1, 2])
    actions = np.zeros(2, np.int64)
    seen = [vector.advance(actions) for _ in range(3)]
    assert [observation[0].tolist() for observation, *_ in seen] == [[1, 1]] * 3
    assert [reward.tolist() for _, reward, *_ in seen] == [[1, 1], [0, 1], [0, 1]]
    assert [terminated.tolist() for *_, terminated, _ in seen] == [[True, False]] * 3


def test_running_episodes_of_a_vector_environment_are_restored() -> None:
    def make_vector() -> Any:
        return as_vector(
            make_jointly_stepped_envs(
                SeededEpisodesEnv(), SeededEpisodesEnv(), SeededEpisodesEnv()
            ),
            max_episode_steps=9,
        )

    first, second = make_vector(), make_vector()
    actions = np.array([0, 1, 2])
    first.begin(np.array([True, True, True]), [1, 2, 3])
    first.advance(actions)
    first.begin(np.array([False, True, False]), [0, 7, 0])
    first.advance(actions)
    found = second.restore_episodes(first.save_episodes())
    assert [one.is_reproduced for one in found] == [True] * 3
    for one, other in zip(first.advance(actions), second.advance(actions), strict=True):
        assert one.tolist() == other.tolist()


def test_an_episode_that_is_not_reproducible_is_abandoned() -> None:
    first, second = (
        as_vector(make_jointly_stepped_envs(EpisodeLengthsEnv(), EpisodeLengthsEnv())),
        as_vector(make_jointly_stepped_envs(EpisodeLengthsEnv(), EpisodeLengthsEnv())),
    )
    first.begin(ALL, [1, 2])
    # The observations count the episodes, so the second one cannot be repeated.
    first.begin(ALL, [1, 2])
    first.advance(np.zeros(2, np.int64))
    assert [one.is_reproduced for one in second.restore_episodes(first.save_episodes())] == [
        False,
        False,
    ]


def test_failures_name_the_cause() -> None:
    vector = as_vector(make_jointly_stepped_envs(EpisodeLengthsEnv(fail_at=1)))
    vector.begin(np.array([True]), [1])
    with pytest.raises(
        EnvironmentFailedError, match="raised in a step: ValueError: the robot fell over"
    ):
        vector.advance(np.zeros(1, np.int64))


def test_statistics_are_those_of_the_environment_or_the_mean_of_several() -> None:
    envs = [StatisticsEnv(), StatisticsEnv()]
    envs[0].resets = [1, 2, 3]
    assert statistics_of(envs) == [("laps", 1.5)]
    assert statistics_of(gym.wrappers.TimeLimit(envs[0], 5)) == [("laps", 3.0)]
    assert statistics_of(EpisodeLengthsEnv()) == []
    clear_statistics(envs)
    assert [env.cleared for env in envs] == [1, 1]
    envs[0].get_statistics = 3  # type: ignore[assignment, method-assign]
    with pytest.raises(TypeError, match="get_statistics of StatisticsEnv must be a method"):
        statistics_of(envs[0])


def test_copies_follow_the_recipe_or_are_deep() -> None:
    made = gym.make("CartPole-v1", max_episode_steps=7)
    copied: Any = copy_of(made)
    assert copied is not made
    assert copied.spec.max_episode_steps == 7
    env = RepeatingEnv((4,))
    deep: Any = copy_of([env])
    assert deep[0] is not env
    assert deep[0].lengths == (4,)
    vector: Any = copy_of(
        SyncVectorEnv([EpisodeLengthsEnv, EpisodeLengthsEnv], autoreset_mode=AutoresetMode.DISABLED)
    )
    assert vector.num_envs == 2
    wrapped: Any = copy_of(gym.wrappers.TransformReward(made, lambda reward: 2 * reward))
    wrapped.reset(seed=1)
    assert wrapped.step(0)[1] == 2.0


def test_ragged_infos_are_ignored() -> None:
    class RaggedInfoEnv(EpisodeLengthsEnv):
        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, _ = super().step(action)
            return (
                observation,
                reward,
                terminated,
                truncated,
                {f"key{self.at}": [1] * self.at, "success": None},
            )

    vector = as_vector([RaggedInfoEnv((2,)), RaggedInfoEnv((3,))])
    vector.begin(ALL, [1, 2])
    for _ in range(3):
        vector.advance(np.zeros(2, np.int64))


class ReturningVector(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector environment of two slots whose steps return what it was made with."""

    def __init__(self, space: gym.Space[Any], *result: Any, good_steps: int = 0) -> None:
        super().__init__(
            SyncVectorEnv(
                [lambda: ReturningEnv(space, good_steps=10**9)] * 2,
                autoreset_mode=AutoresetMode.DISABLED,
            )
        )
        self.result = result
        self.good_steps = good_steps

    def step(self, actions: Any) -> Any:
        stepped = super().step(actions)
        self.good_steps -= 1
        return stepped if self.good_steps >= 0 else self.result


BOX, ZEROS, NOT = gym.spaces.Box(-1, 1, (3,)), np.zeros((2, 3), np.float32), np.zeros(2, np.bool_)


@pytest.mark.parametrize(
    ("space", "result", "texts"),
    [
        (BOX, (ZEROS, np.zeros(3), NOT, NOT, {}), ["the rewards [0., 0., 0.] (shape (3,)"]),
        (BOX, (ZEROS, None, NOT, NOT, {}), ["the rewards None", "return 2 numbers"]),
        (BOX, (ZEROS, NOT, None, NOT, {}), ["terminated None", "return 2 booleans"]),
        (BOX, (ZEROS, NOT, NOT, np.zeros((2, 2)), {}), ["truncated", "(shape (2, 2)"]),
        (BOX, (ZEROS, NOT, NOT, NOT, None), ["the info None", "return a dict"]),
        (BOX, (ZEROS, NOT, NOT, {}), ["4 values", "wrapped by shimmy"]),
        (BOX, (ZEROS[:1], NOT, NOT, NOT, {}), ["observations", "(shape (1, 3)", "of 2 slots"]),
        (BOX, (ZEROS[:, :1], NOT, NOT, NOT, {}), ["the observation [0.] (shape (1,)"]),
        (BOX, (None, NOT, NOT, NOT, {}), ["observations None"]),
        (gym.spaces.Discrete(4), (np.array([0, 5]), NOT, NOT, NOT, {}), ["5 (shape ()", "0 to 3"]),
        (gym.spaces.Discrete(4), (np.array([-1, 0]), NOT, NOT, NOT, {}), ["-1 (shape ()"]),
        (
            gym.spaces.MultiDiscrete([2, 3]),
            (np.array([[0, 0], [0, 3]]), NOT, NOT, NOT, {}),
            ["3 at [1]", "(environment 1)"],
        ),
    ],
)
@pytest.mark.parametrize("good_steps", [0, CHECKED_STEPS])
def test_what_is_wrong_with_a_step_of_a_vector_environment_is_named(
    space: Any, result: Any, texts: list[str], good_steps: int
) -> None:
    vector = as_vector(ReturningVector(space, *result, good_steps=good_steps))
    assert isinstance(vector, GymVector)
    vector.begin(ALL, [1, 2])
    actions = np.zeros(2, np.int64)
    for _ in range(good_steps):
        vector.advance(actions)
    with pytest.raises(EnvironmentFailedError) as caught:
        vector.advance(actions)
    for text in [f"in step {good_steps + 1} of episode 1 (environment", *texts]:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("space", "observation", "text"),
    [
        (BOX, np.full((2, 3), 2.0), "2.0 at [0] is out of bounds"),
        (gym.spaces.Box(0, 255, (3,), np.uint8), np.full((2, 3), 0.5), "return uint8"),
    ],
)
def test_the_first_observations_of_a_vector_environment_are_compared_with_its_space(
    space: Any, observation: Any, text: str
) -> None:
    vector = as_vector(ReturningVector(space, observation, NOT, NOT, NOT, {}))
    vector.begin(ALL, [1, 2])
    with pytest.raises(EnvironmentFailedError) as caught:
        vector.advance(np.zeros(2, np.int64))
    assert text in str(caught.value)
    assert "in step 1 of episode 1 (environment 0)" in str(caught.value)


def test_rewards_of_a_vector_environment_may_be_a_column() -> None:
    rewards, flags = np.array([[1.0], [2.0]]), np.array([[True], [False]])
    vector = as_vector(ReturningVector(BOX, ZEROS, rewards, flags, flags, {}))
    vector.begin(ALL, [1, 2])
    _, reward, terminated, truncated = vector.advance(np.zeros(2, np.int64))
    assert reward.tolist() == [1.0, 2.0]
    assert terminated.tolist() == truncated.tolist() == [True, False]


def test_a_vector_environment_that_changes_its_actions_resumes_exactly() -> None:
    def make_vector() -> Any:
        class ChangingVector(VectorWrapper[Any, Any, Any, Any, Any]):
            def step(self, actions: Any) -> Any:
                stepped = super().step(actions.copy())
                actions[...] = 0
                return stepped

        return as_vector(
            ChangingVector(
                SyncVectorEnv([ActionChangingEnv] * 2, autoreset_mode=AutoresetMode.DISABLED)
            )
        )

    first, second = make_vector(), make_vector()
    first.begin(ALL, [1, 2])
    for _ in range(3):
        actions = np.full((2, 2), 0.5, np.float32)
        observation = first.advance(actions)[0].copy()
        assert (actions == 0.5).all()
    restored = second.restore_episodes(first.save_episodes())
    assert [one.is_reproduced for one in restored] == [True, True]
    assert np.array_equal(np.stack([one.observation for one in restored]), observation)


def test_an_async_vector_with_ragged_infos_ends_with_a_message_and_can_be_closed() -> None:
    env = AsyncVectorEnv([RaggedInfoEnv] * 2, autoreset_mode=AutoresetMode.DISABLED)
    vector = as_vector(env)
    vector.begin(ALL, [1, 7])
    with pytest.raises(EnvironmentFailedError, match="arrays of one name in the infos must have"):
        vector.advance(np.zeros(2, np.int64))
    assert not any(process.is_alive() for process in env.processes)
    env.close()
