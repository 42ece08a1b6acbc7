"""What an environment returns is compared with its spaces, and a fault is named."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tests.support.misbehaving_envs import ReturningEnv, SelfSavingEnv, Walk
from workers.core.errors import EnvironmentFailedError
from workers.rl.envs.env_checks import CHECKED_STEPS
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.vector import SerialVector

BOX = spaces.Box(-1, 1, (4,), np.float32)
BYTES = spaces.Box(0, 255, (4,), np.uint8)
DICT = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (2,), np.float32)})
B = np.zeros(2, np.float32)


def step(env: gym.Env[Any, Any], steps: int = 1) -> Any:
    """Begins an episode of one environment and returns the result of its last step."""
    vector = SerialVector([lambda: EpisodeEnv(env)])
    vector.begin(np.array([True]), [1])
    for _ in range(steps):
        result = vector.advance(np.zeros((1, *(env.action_space.shape or ())), np.int64))
    return result


@pytest.mark.parametrize(
    ("space", "observation", "texts"),
    [
        (BOX, np.zeros(1, np.float32), ["[0.] (shape (1,), dtype float32)", "shape (4,)"]),
        (BOX, 0.5, ["0.5 (type float)", "shape (4,), dtype float32, bounds -1.0 to 1.0"]),
        (BOX, np.zeros((4, 1), np.float32), ["shape (4, 1)"]),
        (BOX, np.zeros((2, 2), np.float32), ["shape (2, 2)"]),
        (BOX, None, ["None", "return an array of numbers"]),
        (BOX, ["a"] * 4, ["return an array of numbers"]),
        (BOX, [[1.0], [1.0, 2.0]], ["it is no array"]),
        (BOX, np.full(4, None), ["dtype object"]),
        (BOX, np.array([0, 0, 2.5, 0]), ["2.5 at [2] is out of bounds", "bounds -1.0 to 1.0"]),
        (BOX, np.array([0, np.nan, 0, 0]), ["nan at [1] is out of bounds"]),
        (spaces.Box(-np.inf, np.inf, (1,)), np.array([1e300]), ["1e+300 at [0]"]),
        (BYTES, np.array([0.5, 0, 0, 0]), ["dtype float64", "return uint8"]),
        (BYTES, np.array([0, -1, 0, 0]), ["-1 at [1] is out of bounds", "bounds 0 to 255"]),
        (BYTES, [0, 0, 0, 256], ["256 at [3] is out of bounds"]),
        (spaces.Box(0, 1, (2,), np.uint8), np.array([0, 2], np.uint8), ["2 at [1]"]),
        (spaces.Box(np.array([0, 1]), np.array([2, 3])), [0, 0.5], ["[0., 1.] to [2., 3.]"]),
        (spaces.Discrete(4), 5, ["5 (type int)", "Discrete of shape (), dtype int64, bounds 0 to"]),
        (spaces.Discrete(4), -1, ["bounds 0 to 3"]),
        (spaces.Discrete(4), 1.5, ["1.5 (type float)"]),
        (spaces.Discrete(4), np.array([1]), ["shape (1,)"]),
        (spaces.Discrete(4, start=-2), 2, ["bounds -2 to 1"]),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 3]), ["3 at [1]", "bounds 0 to [1, 2]"]),
        (spaces.MultiDiscrete([2, 3]), np.array([1]), ["shape (1,)"]),
        (spaces.MultiBinary(3), np.array([0, 1, 2]), ["2 at [2]", "bounds 0 to 1"]),
        (spaces.MultiBinary(3), np.array([0, 1, 0.5]), ["0.5 at [2]"]),
        (DICT, {"a": 3, "b": B}, ["the observation of a 3", "where observation_space of a is"]),
        (DICT, {"a": -1, "b": B}, ["the observation of a -1"]),
        (DICT, {"a": 1.0, "b": B}, ["the observation of a 1.0"]),
        (DICT, {"a": 1}, ["'b' is missing"]),
        (DICT, {"a": 1, "b": B, "c": 2}, ["'c' is not declared"]),
        (DICT, {"a": 1, "b": B[:1]}, ["the observation of b", "shape (1,)"]),
        (DICT, {"a": 1, "b": None}, ["the observation of b None"]),
        (DICT, B, ["return a dict"]),
        (spaces.Tuple([DICT, BOX]), ({"a": 7, "b": B}, np.zeros(4)), ["the observation of 0.a 7"]),
        (spaces.Tuple([BOX, BOX]), (np.zeros(4),), ["1 is missing"]),
        (spaces.Tuple([BOX]), 3, ["return a tuple"]),
    ],
)
def test_an_observation_outside_of_its_space_is_refused_with_shape_dtype_and_bounds(
    space: Any, observation: Any, texts: list[str]
) -> None:
    for env, place in (
        (ReturningEnv(space, observation), "in step 1 of episode 1 (environment 0)"),
        (ReturningEnv(space, first=(observation, {})), "in the reset of episode 1 (environment 0)"),
    ):
        with pytest.raises(EnvironmentFailedError) as caught:
            step(env)
        for text in [place, *texts]:
            assert text in str(caught.value)


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (BOX, np.array([0.1, 0.2, 0.3, 1.0 + 1e-9])),
        (BOX, [0.0, 0.5, -1.0, 1.0]),
        (BOX, np.array([0, 1, -1, 0])),
        (BYTES, np.array([0, 1, 2, 255])),
        (BYTES, [0, 1, 2, 255]),
        (BYTES, np.zeros(4, np.bool_)),
        (spaces.Box(-np.inf, np.inf, (2,)), np.array([np.inf, -np.inf])),
        (spaces.Discrete(3, start=-1), np.int32(1)),
        (spaces.Discrete(3), np.array(2)),
        (spaces.Discrete(2), np.True_),
        (spaces.MultiDiscrete([2, 3]), [1, 2]),
        (spaces.MultiBinary(2), [True, False]),
        (DICT, {"b": [0.0, 0.5], "a": np.True_}),
        (spaces.Tuple([spaces.Discrete(2), BOX]), [1, np.zeros(4)]),
        (spaces.Tuple([spaces.MultiDiscrete([[2, 3], [1, 2]])]), (np.array([[1, 2], [0, 1]]),)),
    ],
)
def test_an_observation_whose_values_fit_is_accepted_whatever_type_holds_them(
    space: Any, observation: Any
) -> None:
    observed = step(ReturningEnv(space, observation, first=(observation, {})))[0]
    if isinstance(space, spaces.Dict | spaces.Tuple):
        flat = gym.spaces.utils.flatten(space, observation)
        assert np.array_equal(observed[0], flat.astype(np.float32))
    else:
        assert np.array_equal(observed[0], np.asarray(observation, space.dtype))


@pytest.mark.parametrize(
    ("space", "observation", "text"),
    [
        (spaces.Discrete(4), 5, "5 (type int)"),
        (spaces.Discrete(4), np.int64(-1), "-1"),
        (spaces.MultiDiscrete([2, 3]), np.array([2, 0]), "2 at [0]"),
        (spaces.MultiDiscrete([2, 3]), np.array([0, -1]), "-1 at [1]"),
        (DICT, {"a": 3, "b": B}, "the observation of a 3"),
        (DICT, {"a": -1, "b": B}, "the observation of a -1"),
        (spaces.Tuple([spaces.MultiDiscrete([2, 3]), BOX]), ([1, 3], np.zeros(4)), "3 at [1]"),
        (BOX, np.zeros(3), "shape (3,)"),
        (BYTES, [0, 0, 0, -1], "-1 at [3]"),
        (DICT, {"a": 1}, "'b' is missing"),
    ],
)
def test_indices_out_of_range_are_refused_after_the_first_steps_too(
    space: Any, observation: Any, text: str
) -> None:
    env = ReturningEnv(space, observation, good_steps=CHECKED_STEPS + 5)
    with pytest.raises(EnvironmentFailedError) as caught:
        step(env, CHECKED_STEPS + 6)
    assert text in str(caught.value)
    assert f"in step {CHECKED_STEPS + 6} of episode 1" in str(caught.value)


def test_the_last_observations_of_the_first_episodes_are_checked() -> None:
    env = ReturningEnv(BOX, result=(0.0, True, False, {}), good_steps=CHECKED_STEPS + 5)
    with pytest.raises(EnvironmentFailedError, match="the observation None"):
        step(env, CHECKED_STEPS + 6)


def test_bounds_of_a_box_are_compared_in_the_first_steps_only() -> None:
    outside = np.full(4, 2.0)
    env = ReturningEnv(BOX, outside, good_steps=CHECKED_STEPS)
    assert step(env, CHECKED_STEPS + 1)[0].tolist() == [outside.tolist()]
    with pytest.raises(EnvironmentFailedError, match=f"in step {CHECKED_STEPS} of episode 1"):
        step(ReturningEnv(BOX, outside, good_steps=CHECKED_STEPS - 1), CHECKED_STEPS)


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        ((np.zeros(2), False, False, {}), ["the reward [0., 0.] (shape (2,)", "return a number"]),
        ((None, False, False, {}), ["the reward None", "return a number"]),
        ((1j, False, False, {}), ["the reward 1j (type complex)"]),
        (([], False, False, {}), ["the reward [] (type list)"]),
        (({"a": 1.0}, False, False, {}), ["the reward {'a': 1.0} (type dict)"]),
        ((0.0, np.zeros(2, bool), False, {}), ["terminated [False, False] (shape (2,)"]),
        ((0.0, "no", False, {}), ["terminated 'no' (type str)"]),
        ((0.0, True, False, None), ["the info None", "return a dict, which may be empty"]),
        ((0.0, False, False, [1]), ["the info [1] (type list)"]),
        (
            (0.0, True, False, {"is_success": np.array([True, False])}),
            ["info['is_success'] [ True, False] (shape (2,), dtype bool)", "return True or False"],
        ),
        ((0.0, True, False, {"success": "yes"}), ["info['success'] 'yes' (type str)"]),
        ((0.0, False, False, {"needs_reset": np.zeros(2)}), ["info['needs_reset'] [0., 0.]"]),
        ((0.0, False, {}), ["returned 4 values", "old gym can be wrapped by shimmy"]),
        ((), ["returned 1 values", "(observation, reward, terminated, truncated, info)"]),
    ],
)
@pytest.mark.parametrize("good_steps", [0, CHECKED_STEPS + 2])
def test_what_is_wrong_with_a_step_is_named_with_its_place(
    result: Any, texts: list[str], good_steps: int
) -> None:
    with pytest.raises(EnvironmentFailedError) as caught:
        step(ReturningEnv(BOX, np.zeros(4), result=result, good_steps=good_steps), good_steps + 1)
    for text in [f"in step {good_steps + 1} of episode 1 (environment 0)", *texts]:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (("0.5", False, False, {}), "the reward '0.5' (type str)"),
        ((0.0, False, None, {}), "truncated None in step 1"),
        ((0.0, False, False, None), "the info None in step 1"),
    ],
)
def test_values_that_cause_no_exception_are_refused_in_the_first_steps(
    result: Any, text: str
) -> None:
    with pytest.raises(EnvironmentFailedError) as caught:
        step(ReturningEnv(BOX, np.zeros(4), result=result))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (np.zeros(4), "[0., 0., 0., 0.] (shape (4,), dtype float64)"),
        (np.zeros(2), "[0., 0.] (shape (2,), dtype float64)"),
        ((np.zeros(4),), "1 values"),
        ((np.zeros(4), {}, 1), "3 values"),
        (0, "0 (type int)"),
        ((np.zeros(4), None), "the info None"),
    ],
)
def test_a_reset_that_does_not_return_a_pair_is_named_with_the_remedy(
    first: Any, text: str
) -> None:
    with pytest.raises(EnvironmentFailedError) as caught:
        step(ReturningEnv(BOX, np.zeros(4), first=first))
    assert f"the environment returned {text}" in str(caught.value)
    assert "in the reset of episode 1 (environment 0)" in str(caught.value)


def test_an_old_environment_within_a_wrapper_is_told_what_to_return() -> None:
    env = gym.wrappers.TimeLimit(ReturningEnv(BOX, np.zeros(4), result=(0.0, False, {})), 5)
    with pytest.raises(EnvironmentFailedError, match=r"raised in step 1: .* wrapped by shimmy"):
        step(env)
    inner = gym.wrappers.RescaleObservation(
        ReturningEnv(BOX, first=np.zeros(4)), np.float32(0), np.float32(1)
    )
    with pytest.raises(EnvironmentFailedError, match=r"raised in reset: .* wrapped by shimmy"):
        step(inner)


@pytest.mark.parametrize(
    "reward",
    [2, np.float32(2), np.float64(2), np.array(2.0), np.array([2.0]), np.array([[2]]), [2.0]],
    ids=str,
)
def test_a_reward_with_one_entry_is_a_number(reward: Any) -> None:
    result = step(ReturningEnv(BOX, np.zeros(4), result=(reward, [True], np.array([0]), {})))
    assert [one.tolist() for one in result[1:]] == [[2.0], [True], [False]]


def test_success_may_be_an_array_with_one_entry() -> None:
    env = EpisodeEnv(
        ReturningEnv(BOX, np.zeros(4), result=(0.0, True, False, {"is_success": np.array([1])}))
    )
    env.reset(seed=1)
    env.step(0)
    assert env.success is True


def test_an_environment_that_cannot_save_its_state_is_named() -> None:
    class BrokenEnv(SelfSavingEnv):
        def snapshot_state(self) -> Any:
            raise KeyError("gone")

        def restore_state(self, state: Any) -> None:
            raise KeyError("gone")

    saved = EpisodeEnv(SelfSavingEnv())
    saved.reset(seed=1)
    saved.step(0)
    env = EpisodeEnv(BrokenEnv())
    env.reset(seed=1)
    with pytest.raises(EnvironmentFailedError, match="raised in snapshot_state: KeyError: 'gone'"):
        env.save_episode()
    with pytest.raises(EnvironmentFailedError, match="raised in restore_state: KeyError: 'gone'"):
        env.restore_episode([saved.save_episode()])


def test_an_environment_that_raises_keeps_its_own_message() -> None:
    class RaisingValueError(Walk):
        def step(self, action: Any) -> Any:
            raise ValueError("too many values to unpack")

    with pytest.raises(EnvironmentFailedError) as caught:
        step(RaisingValueError())
    assert str(caught.value) == (
        "the environment raised in step 1: ValueError: too many values to unpack"
    )
