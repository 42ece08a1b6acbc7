"""The two test environments that are part of Palestra."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from palestra.contract.envs import EnvDefinition
from workers.core.errors import DefinitionError
from workers.rl.envs.bit_flip import BitFlip
from workers.rl.envs.builtin import BUILTIN
from workers.rl.envs.factory import make_goal_rule, make_vector
from workers.rl.envs.goal_rule import goal_rule


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_environments_pass_gymnasiums_checker(name: str) -> None:
    check_env(gym.make(name).unwrapped, skip_render_check=True)


def test_a_seed_repeats_the_episode_in_another_process() -> None:
    here, there = (
        _record_episode(EnvDefinition(id="palestra/BitFlip-v0", num_envs=2, vectorization=way))
        for way in ("sync", "async")
    )
    assert np.array_equal(here, there)


def _record_episode(spec: EnvDefinition) -> Any:
    vector = make_vector(spec)
    shown = [vector.begin(np.ones(2, np.bool_), [5, 6]).copy()]
    shown += [vector.advance(np.array([index % 4, 1]))[0].copy() for index in range(8)]
    vector.close()
    return np.stack(shown)


def test_bits_are_flipped_until_the_goal_is_reached() -> None:
    env = gym.make("palestra/BitFlip-v0", bits=6)
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        wrong = np.flatnonzero(observation["observation"] != observation["desired_goal"])
        assert wrong.size
        steps = [env.step(index) for index in wrong]
        assert [reward for _, reward, *_ in steps] == [-1.0] * (len(wrong) - 1) + [0.0]
        assert [terminated for _, _, terminated, *_ in steps] == [False] * (len(wrong) - 1) + [True]
        assert [info["is_success"] for *_, info in steps][-1]
        assert np.array_equal(steps[-1][0]["achieved_goal"], observation["desired_goal"])


def test_an_episode_of_bits_is_cut_after_as_many_steps() -> None:
    env = gym.make("palestra/BitFlip-v0", bits=4)
    env.reset(seed=7)
    assert [env.step(0)[3] for _ in range(4)] == [False, False, False, True]


def test_rewards_can_be_computed_for_other_goals() -> None:
    env: Any = gym.make("palestra/BitFlip-v0", bits=3).unwrapped
    achieved, desired = np.array([[0, 1, 0], [1, 1, 1]]), np.array([[0, 1, 0], [0, 1, 1]])
    assert env.compute_reward(achieved, desired).tolist() == [0.0, -1.0]
    assert env.compute_terminated(achieved.astype(np.float32), desired).tolist() == [True, False]
    assert float(env.compute_reward(achieved[0], desired[0])) == 0.0


def test_the_goals_of_vectors_can_be_judged() -> None:
    spec = EnvDefinition(id="palestra/BitFlip-v0", num_envs=3, kwargs={"bits": 4})
    vector = make_vector(spec)
    rule = make_goal_rule(spec, vector)
    assert rule is not None
    before = vector.begin(np.ones(3, np.bool_), [1, 2, 3]).copy()
    for action in (0, 1):
        after, reward, terminated, _ = vector.advance(np.full(3, action))
        told = rule.judge(after[:, rule.achieved], after[:, rule.desired])
        assert [one.tolist() for one in told] == [reward.tolist(), terminated.tolist()]
    assert np.array_equal(after[:, rule.desired], before[:, rule.desired])
    assert [
        one.tolist() for one in rule.judge(after[:, rule.achieved], after[:, rule.achieved])
    ] == [[0.0] * 3, [True] * 3]
    assert (
        make_goal_rule(
            EnvDefinition(id="CartPole-v1"), make_vector(EnvDefinition(id="CartPole-v1"))
        )
        is None
    )


def test_environments_that_judge_one_goal_at_a_time_are_asked_so() -> None:
    class SingleGoalEnv(BitFlip):
        compute_reward = staticmethod(
            lambda achieved, desired, info: 0.0 if (achieved == desired).all() else -1.0
        )
        compute_terminated = staticmethod(
            lambda achieved, desired, info: bool(achieved[0] == desired[0])
        )

    env = SingleGoalEnv(2)
    rule = goal_rule(env, env.observation_space)
    assert rule is not None
    achieved, desired = (
        np.array([[0, 1], [1, 1], [0, 0]], np.float32),
        np.array([[0, 1], [0, 1], [0, 1]], np.float32),
    )
    for count in (1, 3):
        told = rule.judge(achieved[:count], desired[:count])
        assert [one.tolist() for one in told] == [
            [0.0, -1.0, -1.0][:count],
            [True, False, True][:count],
        ]


def test_the_cue_is_shown_once_and_must_be_named_later() -> None:
    env = gym.make("palestra/Recall-v0", cues=3, delay=4)
    for seed in range(10):
        cue = env.reset(seed=seed)[0]
        assert cue[:3].sum() == 1
        assert cue[3] == 0
        shown = [env.step(seed % 3) for _ in range(4)]
        assert [float(one[0][3]) for one in shown] == [0, 0, 0, 1]
        assert not any(one[0][:3].any() or one[1] or one[2] for one in shown)
        right = int(cue.argmax())
        answer = right if seed % 2 else (right + 1) % 3
        _, reward, terminated, truncated, info = env.step(answer)
        assert (reward, terminated, truncated, info) == (
            float(seed % 2),
            True,
            False,
            {"is_success": bool(seed % 2)},
        )


def test_without_a_memory_the_best_mean_return_is_chance() -> None:
    means = [_compute_mean_return(answer) for answer in range(4)]
    assert sum(means) == 1.0
    assert max(means) < 0.3


def _compute_mean_return(answer: int) -> float:
    vector = make_vector(EnvDefinition(id="palestra/Recall-v0", num_envs=400, kwargs={"delay": 1}))
    vector.begin(np.ones(400, np.bool_), list(range(400)))
    vector.advance(np.zeros(400, np.int64))
    return float(vector.advance(np.full(400, answer))[1].mean())


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("palestra/BitFlip-v0", {"bits": 0}),
        ("palestra/Recall-v0", {"cues": 1}),
        ("palestra/Recall-v0", {"delay": 0}),
    ],
)
def test_senseless_sizes_are_refused(name: str, kwargs: Any) -> None:
    with pytest.raises(DefinitionError, match="must be at least"):
        make_vector(EnvDefinition(id=name, kwargs=kwargs))
