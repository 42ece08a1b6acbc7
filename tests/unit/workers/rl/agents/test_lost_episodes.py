"""After a resume that could not restore an episode, no transition connects the two episodes."""

import numpy as np
import pytest

from palestra.contract.agents import (
    DdpgParameters,
    DqnParameters,
    DrqnParameters,
    PpoParameters,
    RecurrentPpoParameters,
)
from tests.unit.workers.rl.agents.agent_kit import BOX, make_context
from workers.assembly.registry import make_agent
from workers.core.types import Experience

LOST = np.array([True, False])


def make_steps(agent, count: int, reward: float) -> Experience:
    """Returns the experience of `count` steps of two environments with running episodes.

    The agent chooses the actions; all rewards are equal.
    """
    shape = (count, 2)
    observation = np.full((*shape, 3), reward / 1_000, np.float32)
    action = np.stack([agent.act(row, explore=True) for row in observation])
    none = np.zeros(shape, np.bool_)
    return Experience(
        observation,
        action,
        np.full(shape, reward),
        none,
        none.copy(),
        observation.copy(),
        env_steps=2 * count,
    )


def test_rewards_of_two_episodes_are_not_summed_up() -> None:
    agent = make_agent(DqnParameters(n_step=3, gamma=1.0), make_context())
    agent.observe(make_steps(agent, 4, 1.0))
    agent.mark_lost_episodes(LOST)
    agent.observe(make_steps(agent, 4, 100.0))
    rewards = set(agent.memory.sample(10, 64).reward.ravel().tolist())
    assert rewards == {1.0, 2.0, 3.0, 100.0, 200.0, 300.0}


@pytest.mark.parametrize(
    "hyper",
    [DrqnParameters(memory_units=4), RecurrentPpoParameters(memory_units=4)],
    ids=["drqn", "recurrent ppo"],
)
def test_the_recurrent_state_of_a_lost_episode_is_reset(hyper) -> None:
    agent = make_agent(hyper, make_context())
    agent.observe(make_steps(agent, 1, 1.0))
    before = agent.state_dict()["recurrent"]["training"].copy()
    agent.mark_lost_episodes(LOST)
    after = agent.state_dict()["recurrent"]["training"]
    assert before.all()
    assert not after[0].any()
    assert np.array_equal(after[1], before[1])


def test_correlated_noise_is_reset() -> None:
    agent = make_agent(
        DdpgParameters(learning_starts=0, noise="ornstein_uhlenbeck"), make_context(BOX)
    )
    agent.observe(make_steps(agent, 3, 1.0))
    assert agent.state_dict()["explorer"]["fresh"] is None
    agent.mark_lost_episodes(LOST)
    assert agent.state_dict()["explorer"]["fresh"].tolist() == LOST.tolist()


CUT = {
    "ppo": PpoParameters(rollout_steps=8),
    "recurrent": RecurrentPpoParameters(rollout_steps=8, memory_units=4),
}


@pytest.mark.parametrize("hyper", CUT.values(), ids=CUT)
def test_a_rollout_treats_a_lost_episode_as_truncated(hyper) -> None:
    agent = make_agent(hyper, make_context())
    # The agent has not stored any step yet.
    agent.mark_lost_episodes(LOST)
    one = make_steps(agent, 1, 1.0)
    agent.observe(one)
    agent.mark_lost_episodes(LOST)
    agent.observe(make_steps(agent, 1, 1.0))
    assert agent.memory.contents()["truncated"].tolist() == [[True, False], [False, False]]


def test_an_ended_episode_is_not_treated_as_truncated() -> None:
    agent = make_agent(PpoParameters(rollout_steps=8), make_context())
    one = make_steps(agent, 1, 1.0)
    one.terminated[0, 0] = True
    agent.observe(one)
    agent.mark_lost_episodes(LOST)
    assert not agent.memory.contents()["truncated"].any()
