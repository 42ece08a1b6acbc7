"""What holds for each agent for continuous actions: SAC, TD3, DDPG and NAF."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import DdpgParameters, NafParameters, SacParameters, Td3Parameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from tests.unit.workers.rl.agents.continuous_kit import (
    assert_learns_a_bandit,
    get_row,
    make_algorithm,
    make_random_batch,
    make_replay_agent,
    make_state,
    stack_states,
)
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.errors import DefinitionError
from workers.rl.agents import ddpg, naf, sac, td3

SMALL: dict[str, Any] = {
    "hidden_sizes": (8, 8),
    "batch_size": 16,
    "learning_rate": 1e-2,
    "tau": 0.1,
    "learning_starts": 0,
}
BANDIT: dict[str, Any] = {"hidden_sizes": (32,), "learning_rate": 5e-3, "learning_starts": 64}


class Case(NamedTuple):
    """An agent, its parameters in most tests and for the bandit, and the noises of a batch."""

    build: Any
    hyper: Any
    bandit: Any
    noises: int

    def make_batch(self, seed: int = 0) -> Any:
        return make_random_batch(seed=seed, noises=self.noises)


CASES = {
    "sac": Case(
        sac.build,
        SacParameters(**SMALL, initial_temperature=0.3),
        SacParameters(**BANDIT, batch_size=64, target_entropy=-3.0),
        2,
    ),
    "td3": Case(
        td3.build,
        Td3Parameters(**SMALL, policy_delay=3, target_noise=0.4, target_noise_clip=0.3),
        Td3Parameters(**BANDIT, batch_size=64),
        1,
    ),
    "ddpg": Case(
        ddpg.build,
        DdpgParameters(**SMALL, actor_learning_rate=5e-3, critic_weight_decay=0.05),
        DdpgParameters(**BANDIT, actor_learning_rate=5e-3, critic_weight_decay=0.0),
        0,
    ),
    "naf": Case(
        naf.build,
        NafParameters(**SMALL, updates_per_train=1),
        NafParameters(**BANDIT),
        0,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_both_gradients_give_the_same_update_and_change_nothing(case: Case) -> None:
    algorithm = make_algorithm(case.build, case.hyper)
    state, batch = make_state(algorithm), case.make_batch()
    before = map_tensors(torch.clone, state), map_tensors(torch.clone, batch)
    eager, functional = (
        algorithm.update(gradient, state, batch)
        for gradient in (eager_gradient, functional_gradient)
    )
    torch.testing.assert_close(tuple(eager), tuple(functional), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close((state, batch), before, rtol=0, atol=0)


def test_vmap_over_four_seeds_equals_four_updates(case: Case) -> None:
    algorithm = make_algorithm(case.build, case.hyper)
    updates = (algorithm.cycle * 3)[:3]
    states, batches = (
        [make_state(algorithm, seed) for seed in range(4)],
        [case.make_batch(seed) for seed in range(4)],
    )
    stack, stacked_batch = stack_states(states), stack_states(batches)
    for update in updates:
        stack = torch.func.vmap(
            lambda state, batch, update=update: update(functional_gradient, state, batch)
        )(stack, stacked_batch).state
    for seed, alone in enumerate(states):
        for update in updates:
            alone = update(eager_gradient, alone, batches[seed]).state  # noqa: PLW2901
        torch.testing.assert_close(get_row(stack, seed), alone, rtol=1e-4, atol=1e-5)


def test_acting_in_numpy_equals_acting_in_torch(case: Case) -> None:
    agent = make_replay_agent(case.build, case.hyper)
    observation = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    quick = agent.act(observation, explore=False)
    slow = agent.algorithm.act(agent.named_parameters(), torch.from_numpy(observation), ())
    np.testing.assert_allclose(quick, slow.numpy(), rtol=1e-5, atol=1e-6)


def test_a_state_in_mid_training_continues_bit_exactly(case: Case) -> None:
    hyper = case.hyper.model_copy(update={"learning_starts": 10, "buffer_size": 64})
    first, rng = make_replay_agent(case.build, hyper, seed=3), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(13)
    first.act(np.zeros((2, 3), np.float32), explore=True)
    first.learning_rate = 5e-4
    second = make_replay_agent(case.build, hyper, seed=99)
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    assert second.learning_rate == 5e-4
    for agent in (first, second):
        rng = np.random.default_rng(1)
        agent.observe(make_experience(agent, 20, 2, rng))
        agent.learn(9)
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())


def test_discrete_actions_are_refused_with_a_remedy(case: Case) -> None:
    with pytest.raises(DefinitionError, match=r"dqn, drqn, .*, which take Discrete"):
        case.build(case.hyper, make_context(spaces.Discrete(3)))


def test_a_bandit_is_learnt(case: Case) -> None:
    assert_learns_a_bandit(case.build, case.bandit)
