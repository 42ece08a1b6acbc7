"""An advantage in a batch of one sample is not standardised to zero."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import (
    A2cParameters,
    PpoParameters,
    RecurrentPpoParameters,
    ReinforceParameters,
    TrpoParameters,
)
from tests.unit.workers.rl.agents.agent_kit import make_context, make_experience
from workers.assembly.registry import make_agent
from workers.rl.agents.common.on_policy import standardise
from workers.rl.agents.packs.pack import Pack

ONE = {
    "ppo": PpoParameters(rollout_steps=4, minibatch_size=1, passes=1),
    "ppo, a remainder of one": PpoParameters(rollout_steps=3, minibatch_size=2, passes=1),
    "a2c": A2cParameters(rollout_steps=1, normalize_advantages=True, entropy_coefficient=0.0),
    "reinforce": ReinforceParameters(episodes=1, normalize_advantages=True),
    "trpo": TrpoParameters(rollout_steps=1),
    "recurrent_ppo": RecurrentPpoParameters(rollout_steps=1, minibatch_envs=1, passes=1),
}


def measure_policy_distance(agent: object, steps: int) -> float:
    """Lets an agent learn from `steps` steps, the last of which ends an episode.

    Returns the distance between its policy parameters before and after.
    """
    before = {
        name: tensor.clone()
        for name, tensor in agent.named_parameters().items()
        if name.startswith("policy.")
    }
    gathered = make_experience(agent, steps, 1, np.random.default_rng(0))
    gathered.terminated[:], gathered.truncated[:] = False, False
    gathered.terminated[-1] = True
    agent.observe(gathered)
    agent.learn(99)
    after = agent.named_parameters()
    return max(float((after[name] - tensor).abs().max()) for name, tensor in before.items())


@pytest.mark.parametrize("name", ONE)
def test_the_policy_learns_from_single_samples(name) -> None:
    hyper = ONE[name]
    agent = make_agent(hyper, make_context(spaces.Discrete(3), num_envs=1))
    assert measure_policy_distance(agent, getattr(hyper, "rollout_steps", 1)) > 1e-5


def test_a_single_weight_stays_and_several_are_standardised() -> None:
    assert torch.equal(standardise(torch.tensor([2.5])), torch.tensor([2.5]))
    assert torch.equal(standardise(torch.tensor([[2.5]])), torch.tensor([[2.5]]))
    torch.testing.assert_close(standardise(torch.tensor([1.0, 3.0])), torch.tensor([-1.0, 1.0]))


def test_a_pack_learns_the_same_from_single_samples_as_single_agents() -> None:
    alone, members = (
        [
            make_agent(ONE["ppo"], make_context(spaces.Discrete(3), num_envs=1, seed=seed))
            for seed in range(3)
        ]
        for _ in range(2)
    )
    gathered = [
        make_experience(agent, 4, 1, np.random.default_rng(seed))
        for seed, agent in enumerate(alone)
    ]
    for agent, own in zip(alone, gathered, strict=True):
        agent.observe(own)
        agent.learn(99)
    pack = Pack(members, "eager")
    for agent, own in zip(members, gathered, strict=True):
        agent.observe(own)
    for index in range(3):
        pack.learn(index, 99)
        for name, tensor in alone[index].named_parameters().items():
            torch.testing.assert_close(
                pack.agent(index).named_parameters()[name], tensor, rtol=1e-4, atol=1e-6
            )
