"""Batches of episodes have garage's fields and methods.

garage's algorithms therefore run unchanged.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.support.garage_kit import ConstantPolicy, CountingEnv, GarageEnv
from workers.entrypoints.trainer_parts.episode_batch import EnvSpec, EpisodeBatch
from workers.entrypoints.trainer_parts.process_sampler import ProcessSampler
from workers.entrypoints.trainer_parts.samplers import LocalSampler, VecSampler

SPEC = EnvSpec(max_episode_length=4)
STEPS = (
    "observations",
    "next_observations",
    "actions",
    "rewards",
    "step_types",
    "terminated",
    "truncated",
    "terminals",
)


def make_batch(**changes: Any) -> EpisodeBatch:
    """Returns an episode of three steps that terminated and one of two steps that was truncated."""
    given = {
        "env_spec": SPEC,
        "episode_infos": {"goal": np.array([[1, 2], [3, 4]])},
        "observations": np.arange(5.0)[:, None],
        "last_observations": np.array([[10.0], [20.0]]),
        "actions": np.array([0, 1, 0, 1, 1]),
        "rewards": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        "env_infos": {"lives": np.array([3, 2, 1, 3, 3])},
        "agent_infos": {"mean": np.ones((5, 2)), "hidden": {"h": np.arange(5)}},
        "step_types": np.array([0, 1, 2, 0, 3]),
        "lengths": np.array([3, 2]),
    }
    return EpisodeBatch(**{**given, **changes})


def assert_same(one: EpisodeBatch, two: EpisodeBatch) -> None:
    for name in (*STEPS, "last_observations", "lengths"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("env_infos", "agent_infos", "episode_infos", "episode_infos_by_episode"):
        np.testing.assert_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_each_step_has_its_next_observation_and_step_type() -> None:
    made = make_batch()
    assert made.next_observations.tolist() == [[1], [2], [10], [4], [20]]
    assert made.terminated.tolist() == [False, False, True, False, False]
    assert made.truncated.tolist() == [False, False, False, False, True]
    assert made.returns.tolist() == [6, 9]
    assert made.episode_infos["goal"].tolist() == [[1, 2]] * 3 + [[3, 4]] * 2
    assert [one.tolist() for one in made.actions_list] == [[0, 1, 0], [1, 1]]
    assert [len(one) for one in made.observations_list] == [3, 2]


def test_padded_arrays_reach_to_the_specs_longest_episode() -> None:
    made = make_batch()
    assert made.padded_rewards.tolist() == [[1, 2, 3, 0], [4, 5, 0, 0]]
    assert made.valids.tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]
    assert made.padded_step_types.tolist() == [[0, 1, 2, 0], [0, 3, 0, 0]]
    assert made.padded_actions.shape == (2, 4)
    assert made.padded_observations[1, :, 0].tolist() == [3, 4, 0, 0]
    assert made.padded_next_observations[0, :, 0].tolist() == [1, 2, 10, 0]
    assert made.padded_env_infos["lives"].tolist() == [[3, 2, 1, 0], [3, 3, 0, 0]]
    assert made.padded_agent_infos["mean"].shape == (2, 4, 2)
    assert made.padded_agent_infos["hidden"]["h"].tolist() == [[0, 1, 2, 0], [3, 4, 0, 0]]
    assert make_batch(env_spec=EnvSpec()).padded_rewards.shape == (2, 3)
    with pytest.raises(ValueError, match=r"an episode has 3 steps, more than .*, 2"):
        _ = make_batch(env_spec=EnvSpec(max_episode_length=2)).padded_rewards


def test_split_and_concatenate_are_opposites() -> None:
    made = make_batch()
    parts = made.split()
    assert [(len(part), part.lengths.tolist()) for part in parts] == [(1, [3]), (1, [2])]
    assert parts[1].episode_infos_by_episode["goal"].tolist() == [[3, 4]]
    assert parts[1].agent_infos["hidden"]["h"].tolist() == [3, 4]
    assert_same(EpisodeBatch.concatenate(*parts), made)
    with pytest.raises(ValueError, match="env_infos of the batches have different names"):
        EpisodeBatch.concatenate(made, make_batch(env_infos={}))
    with pytest.raises(ValueError, match="at least one"):
        EpisodeBatch.concatenate()


def test_lists_of_dicts_are_converted_in_both_directions() -> None:
    made = make_batch()
    assert_same(EpisodeBatch.from_list(SPEC, made.to_list()), made)
    rollouts = [
        {
            "observations": [[0.0], [1.0], [9.0]],
            "actions": [0, 1],
            "rewards": [1.0, 1.0],
            "dones": [False, done],
        }
        for done in (0, 1)
    ]
    paths = [{name: np.array(value) for name, value in one.items()} for one in rollouts]
    both = EpisodeBatch.from_list(SPEC, paths)
    assert both.last_observations.tolist() == [[9], [9]]
    assert both.step_types.tolist() == [0, 3, 0, 2]
    short = EpisodeBatch.from_list(
        SPEC, [{**paths[0], "observations": paths[0]["observations"][:2]}]
    )
    assert short.last_observations.tolist() == [[1]]
    with pytest.raises(ValueError, match="neither step_types nor dones"):
        EpisodeBatch.from_list(
            SPEC, [{name: value for name, value in paths[0].items() if name != "dones"}]
        )
    with pytest.raises(ValueError, match="paths is empty"):
        EpisodeBatch.from_list(SPEC, [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lengths", np.array([3.0, 2.0])),
        ("lengths", np.array([[3, 2]])),
        ("lengths", np.array([5, 0])),
        ("lengths", np.array([3, 3])),
        ("rewards", [1.0] * 5),
        ("actions", np.zeros(4)),
        ("last_observations", np.zeros((3, 1))),
        ("env_infos", {"lives": np.zeros(4)}),
        ("agent_infos", {"hidden": {"h": np.zeros(6)}}),
        ("episode_infos", {"goal": np.zeros(5)}),
    ],
)
def test_arrays_that_do_not_fit_are_named(field: str, value: Any) -> None:
    named = "observations" if field == "lengths" and np.array_equal(value, [3, 3]) else field
    with pytest.raises(ValueError, match=named):
        make_batch(**{field: value})


@pytest.mark.parametrize("kind", [LocalSampler, VecSampler, ProcessSampler])
def test_samplers_have_the_spec_of_the_environment(kind: Any) -> None:
    options = {"n_workers": 1} if kind is ProcessSampler else {}
    sampler = kind(ConstantPolicy(), gym.make("CartPole-v1"), 50, seed=1, **options)
    try:
        made = sampler.obtain_samples(0, 20, None)
        assert made.env_spec.max_episode_length == 50
        assert made.env_spec.action_space == gym.spaces.Discrete(2)
        assert made.padded_observations.shape == (len(made), 50, 4)
        other = sampler.obtain_samples(1, 5, None, env_update=CountingEnv(3))
        assert other.env_spec.observation_space.shape == (2,)
        assert EnvSpec.from_env(gym.make("CartPole-v1"), 1_000).max_episode_length == 500
    finally:
        sampler.shutdown_worker()


class EnvWithoutSpec:
    """An object with an environment's spaces and no attribute `spec`."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("env", "own"),
    [
        (gym.make("CartPole-v1"), 500),
        (CountingEnv(), None),
        (GarageEnv(max_episode_length=7), 7),
        (GarageEnv(), None),
        (gym.wrappers.TransformReward(GarageEnv(max_episode_length=7), float), 7),
        (EnvWithoutSpec(), None),
    ],
    ids=["gymnasium", "no spec", "garage", "garage without a limit", "wrapped", "no attribute"],
)
@pytest.mark.filterwarnings("ignore:.*An exception occurred.*:UserWarning")
def test_the_time_limit_of_an_environment_is_that_of_its_own_spec(env: Any, own: Any) -> None:
    spec = EnvSpec.from_env(env)
    assert spec.max_episode_length == own
    assert (spec.observation_space, spec.action_space) == (env.observation_space, env.action_space)
    assert EnvSpec.from_env(env, 3).max_episode_length == 3
    assert EnvSpec.from_env(env, 600).max_episode_length == (own or 600)
