"""The replay memory of an agent in an environment with goals."""

import numpy as np
import pytest
from pydantic import ValidationError

from palestra.contract.agents import (
    DdpgParameters,
    DqnParameters,
    NafParameters,
    SacParameters,
    Td3Parameters,
)
from palestra.contract.agents.common import HindsightReplay
from palestra.contract.envs import EnvDefinition
from tests.unit.workers.rl.agents.agent_kit import BOX, make_context
from workers.assembly.registry import make_agent
from workers.core.errors import DefinitionError
from workers.core.types import AgentContext, CollectPlan
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_goal_rule, make_training_vector
from workers.rl.memory.hindsight_replay import Hindsight

FLIP = EnvDefinition(id="palestra/BitFlip-v0", num_envs=2, kwargs={"bits": 6})


@pytest.fixture
def bit_flip_envs():
    env = make_training_vector(FLIP)
    yield env
    env.close()


def make_agent_for(env, hyper):
    return make_agent(
        hyper,
        AgentContext(
            env.single_observation_space,
            env.single_action_space,
            2,
            0,
            goals=make_goal_rule(FLIP, env),
        ),
    )


@pytest.mark.parametrize("ratio", [0.0, 4.0])
def test_transitions_are_relabelled_with_reached_goals(bit_flip_envs, ratio) -> None:
    agent = make_agent_for(
        bit_flip_envs, DqnParameters(hindsight=HindsightReplay(ratio=ratio), batch_size=8)
    )
    collector = VectorCollector(bit_flip_envs, agent, 0)
    for _ in range(60):
        agent.observe(collector.collect(CollectPlan(vector_steps=5)))
    sample = agent.memory.sample(50, 32)
    reached, asked = sample.next_observation[..., :6], sample.next_observation[..., 6:12]
    at_the_goal = (reached == asked).all(-1)
    assert np.array_equal(sample.reward, np.where(at_the_goal, 0.0, -1.0))
    assert np.array_equal(sample.discount == 0, at_the_goal)
    assert at_the_goal.mean() > 0.2 if ratio else at_the_goal.mean() < 0.1


@pytest.mark.parametrize(
    "kind", [DqnParameters, SacParameters, Td3Parameters, DdpgParameters, NafParameters]
)
def test_an_environment_without_goals_is_refused(kind) -> None:
    hyper = kind(hindsight=HindsightReplay())
    with pytest.raises(
        DefinitionError, match=r"agent\.hindsight: the environment has no goals.*achieved_goal"
    ):
        make_agent(hyper, make_context(None if kind is DqnParameters else BOX))


def test_agents_do_not_relabel_goals_by_default(bit_flip_envs) -> None:
    assert not isinstance(make_agent_for(bit_flip_envs, DqnParameters()).memory, Hindsight)


def test_rewards_of_several_steps_cannot_be_relabelled() -> None:
    with pytest.raises(
        ValidationError,
        match="n_step 3 sums up rewards of another goal: set it to 1, or leave hindsight out",
    ):
        DqnParameters(hindsight=HindsightReplay(), n_step=3)
