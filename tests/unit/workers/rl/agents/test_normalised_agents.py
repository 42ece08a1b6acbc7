"""Agents that normalise observations and rewards by running statistics."""

import numpy as np
import pytest
from gymnasium import spaces

from palestra.contract.agents import (
    PpoParameters,
    ReinforceParameters,
)
from palestra.contract.envs import EnvDefinition
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from workers.core.errors import DefinitionError
from workers.core.types import Experience
from workers.rl.agents import ppo, reinforce
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_vector


def test_statistics_do_not_depend_on_the_pieces_of_a_rollout_and_stand_still_in_an_evaluation() -> (
    None
):
    hyper = PpoParameters(
        rollout_steps=8, minibatch_size=16, normalize_observations=True, normalize_rewards=True
    )
    whole, pieces = (ppo.build(hyper, make_context()) for _ in range(2))
    gathered = make_experience(whole, 8, 2, np.random.default_rng(0))
    columns = ("observation", "action", "reward", "terminated", "truncated", "next_observation")
    whole.observe(gathered)
    for t in range(8):
        assert np.array_equal(pieces.act(gathered.observation[t], explore=True), gathered.action[t])
        pieces.observe(
            Experience(
                **{name: getattr(gathered, name)[t : t + 1] for name in columns}, env_steps=2
            )
        )
    for agent in (whole, pieces):
        agent.learn(100)
    assert_same_state(whole.state_dict(), pieces.state_dict())
    after = whole.state_dict()["normalisers"]
    assert after["observations"]["count"] == after["rewards"]["count"] == 16
    np.testing.assert_allclose(
        after["observations"]["mean"], gathered.observation.reshape(16, 3).mean(0), rtol=1e-5
    )
    with whole.eval_mode():
        whole.act(gathered.observation[0], explore=True)
        whole.observe(gathered)
        whole.learn(1)
        whole.act(gathered.observation[0], explore=False)
    assert_same_state(after, whole.state_dict()["normalisers"])


def normalise_by_hand(rows: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Normalises each step by the mean and deviation of all steps up to and including it."""
    result = np.zeros_like(rows)
    for t in range(len(rows)):
        seen = np.concatenate([rows[step][active[step]] for step in range(t + 1)]).astype(
            np.float64
        )
        result[t] = ((rows[t] - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-8)).clip(-10, 10)
    return result


@pytest.mark.parametrize("own_actions", [True, False])
def test_observations_are_normalised_from_the_first_step_on(own_actions) -> None:
    """Statistics are updated before normalising, as in VecNormalize and NormalizeObservation.

    Regression: observations of the first rollout were only clipped.
    """
    agent = ppo.build(
        PpoParameters(rollout_steps=6, minibatch_size=12, normalize_observations=True),
        make_context(),
    )
    gathered = make_experience(
        agent if own_actions else ppo.build(PpoParameters(), make_context()),
        6,
        2,
        np.random.default_rng(0),
    )
    agent.observe(gathered)
    wanted = normalise_by_hand(gathered.observation, np.ones((6, 2), np.bool_))
    taken = agent.take_rollout()
    np.testing.assert_allclose(taken["observation"], wanted, rtol=1e-4, atol=1e-5)
    seen = gathered.observation.reshape(-1, 3).astype(np.float64)
    behind = (gathered.next_observation - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-8)
    np.testing.assert_allclose(
        taken["next_observation"], behind.clip(-10, 10), rtol=1e-4, atol=1e-5
    )


def test_inactive_slots_are_not_in_the_statistics() -> None:
    """REINFORCE, for example, leaves slots inactive between its episodes."""
    agent = reinforce.build(
        ReinforceParameters(episodes=2, normalize_observations=True), make_context()
    )
    rng, active = (
        np.random.default_rng(0),
        np.array([[True, True], [True, False], [False, True], [True, True]]),
    )
    rows, observations = rng.uniform(-1, 1, (4, 2, 3)).astype(np.float32), []
    for row, on in zip(rows, active, strict=True):
        agent.set_active_slots(on)
        agent.act(row, explore=True)
        observations.append(agent._met[-1])
    np.testing.assert_allclose(
        np.stack(observations), normalise_by_hand(rows, active), rtol=1e-4, atol=1e-5
    )
    assert agent.state_dict()["normalisers"]["observations"]["count"] == 6


def test_a_collector_of_whole_episodes_marks_inactive_slots() -> None:
    """The statistics include only the steps from which the agent learns."""
    vector = make_vector(EnvDefinition(id="CartPole-v1", num_envs=2))
    spaces_of = make_context(vector.single_action_space, vector.single_observation_space)
    agent = reinforce.build(ReinforceParameters(episodes=3, normalize_observations=True), spaces_of)
    gathered = VectorCollector(vector, agent, 0).collect(agent.collect_plan)
    agent.observe(gathered)
    assert (
        agent.state_dict()["normalisers"]["observations"]["count"]
        == gathered.env_steps
        < gathered.observation[..., 0].size
    )


def test_the_first_update_has_ratio_one_with_normalised_observations_too() -> None:
    hyper = PpoParameters(
        rollout_steps=16, passes=1, minibatch_size=32, normalize_observations=True
    )
    agent, rng = ppo.build(hyper, make_context()), np.random.default_rng(0)
    for _ in range(2):
        agent.observe(make_experience(agent, 16, 2, rng))
        report = dict(zip(agent.report_names, agent.learn(1).values, strict=True))
        assert report["policy/kl"] == pytest.approx(0, abs=1e-6)


def test_observations_that_are_no_floats_are_not_normalised() -> None:
    with pytest.raises(DefinitionError, match="normalize_observations needs"):
        ppo.build(
            PpoParameters(normalize_observations=True),
            make_context(observation_space=spaces.Discrete(4)),
        )
