"""Evaluations that draw their actions from the policy, of every agent whose policy allows it."""

from typing import Any

import numpy as np
import pytest
import torch

from palestra.contract.agents import PARAMETER_MODELS, PpoParameters, SacParameters
from palestra.contract.sb3 import Sb3Parameters
from tests.unit.workers.rl.agents.agent_kit import (
    ACTIONS,
    BOX,
    assert_same_state,
    list_leaves,
)
from tests.unit.workers.rl.agents.test_agent_contract import CASES, train_agent
from workers.core.protocols import StochasticActor
from workers.core.rng import global_state
from workers.rl.agents import ppo, sac
from workers.rl.agents.pfrl_adapter import ExternalAgent

STOCHASTIC = {"a2c", "a3c", "ppo", "recurrent_ppo", "reinforce", "sac", "trpo"}
ROWS = 20_000


@pytest.fixture(params=[name for name in CASES if CASES[name][1].has_stochastic_policy])
def case(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]


def draw(agent: Any, observation: Any, seed: int) -> Any:
    rows = [np.random.default_rng((seed, row)) for row in range(len(observation))]
    with agent.eval_mode(), agent.sample_actions(seed, rows):
        return agent.act(observation, explore=False)


def copy_state(agent: Any) -> dict[str, Any]:
    return {
        path: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
        for path, leaf in list_leaves(agent.state_dict()).items()
    }


def test_agents_whose_policy_is_a_distribution_are_marked() -> None:
    assert {name for name, model in PARAMETER_MODELS.items() if model.stochastic_policy} == (
        STOCHASTIC
    )
    algorithms = ("A2C", "DDPG", "DQN", "PPO", "SAC", "TD3")
    assert [name for name in algorithms if Sb3Parameters(algorithm=name).has_stochastic_policy] == [
        "A2C",
        "PPO",
        "SAC",
    ]


def test_drawn_actions_repeat_with_their_seed_and_change_nothing(case: Any) -> None:
    agent, space = train_agent(case), case[2]
    assert isinstance(agent, StochasticActor)
    observation = np.stack([BOX.sample() for _ in range(64)])
    before, generators = copy_state(agent), global_state()
    greedy = agent.act(observation, explore=False)
    first = draw(agent, observation, 3)
    assert all(space.contains(action) for action in first)
    assert np.array_equal(first, draw(agent, observation, 3))
    assert not np.array_equal(first, draw(agent, observation, 4))
    assert not np.array_equal(first, greedy)
    few = draw(agent, observation[:3], 3)
    np.testing.assert_allclose(few, first[:3], rtol=1e-4, atol=1e-5)  # each row by its generator
    with agent.eval_mode():
        assert np.array_equal(agent.act(observation, explore=False), greedy), "greedy again"
    assert_same_state(before, list_leaves(agent.state_dict()))
    assert_same_state(generators, global_state())


def test_drawn_actions_have_the_probabilities_of_the_policy() -> None:
    space = ACTIONS["discrete"]
    agent: Any = train_agent((ppo.build, PpoParameters(rollout_steps=20, minibatch_size=20), space))
    row = BOX.sample()
    drawn = draw(agent, np.repeat(row[None], ROWS, axis=0), 0)
    with torch.no_grad():
        logits = agent.algorithm.model.outputs(agent.named_parameters(), torch.tensor(row[None]))
    probabilities = torch.softmax(logits[0], 0).numpy()
    shares = np.bincount(drawn - space.start, minlength=len(probabilities)) / ROWS
    error = np.sqrt(probabilities * (1 - probabilities) / ROWS)
    assert (np.abs(shares - probabilities) < 5 * error).all()
    assert shares.max() < 1


def test_drawn_actions_of_sac_are_spread_as_those_of_its_training() -> None:
    parameters = SacParameters(batch_size=16, hidden_sizes=(16,), learning_starts=8)
    agent: Any = train_agent((sac.build, parameters, ACTIONS["box"]))
    observation = np.repeat(BOX.sample()[None], ROWS, axis=0)
    drawn = draw(agent, observation, 0)
    trained = agent.act(observation, explore=True)
    spread = trained.std(axis=0)
    assert (spread > 0).all()
    np.testing.assert_allclose(
        drawn.mean(axis=0), trained.mean(axis=0), atol=float(5 * spread.max() * (2 / ROWS) ** 0.5)
    )
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.05)


class PfrlAgent:
    """An agent of PFRL's shape."""

    def act(self, observation: Any) -> int:
        return 0

    def observe(self, *transition: object) -> None:
        """Learns nothing."""

    def get_statistics(self) -> list[tuple[str, float]]:
        return []

    def save(self, directory: str) -> None:
        """Has nothing to save."""

    def load(self, directory: str) -> None:
        """Has nothing to load."""

    def eval_mode(self) -> Any:
        raise AssertionError("not called here")


class DrawingAgent(PfrlAgent):
    """Draws its actions by the global generator of NumPy, unless it acts deterministically."""

    def __init__(self) -> None:
        self.act_deterministically = True

    def act(self, observation: Any) -> int:
        return 0 if self.act_deterministically else int(np.random.randint(1, 1_000))  # noqa: NPY002


def test_agents_of_pfrls_shape_draw_if_they_say_how_they_act() -> None:
    agent = ExternalAgent(DrawingAgent(), num_envs=1, is_batch=False)
    assert agent.has_stochastic_policy
    row = np.zeros((1, 3), np.float32)
    drawn = []
    for seed in (1, 1, 2):
        with agent.sample_actions(seed, []):
            drawn.append(int(agent.act(row, explore=False)[0]))
    assert drawn[0] == drawn[1] != drawn[2]
    assert agent.act(row, explore=False)[0] == 0
    assert not ExternalAgent(PfrlAgent(), num_envs=1, is_batch=False).has_stochastic_policy
