import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import NafParameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from tests.unit.workers.rl.agents.continuous_kit import (
    assert_learns_a_bandit,
    flatten,
    follow,
    get_row,
    make_algorithm,
    make_modules,
    make_random_batch,
    make_replay_agent,
    make_state,
    stack_states,
)
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.errors import DefinitionError
from workers.rl.agents.naf import build

HYPER = NafParameters(
    hidden_sizes=(8, 8),
    batch_size=16,
    learning_rate=1e-2,
    tau=0.1,
    learning_starts=0,
    updates_per_train=1,
)


def compute_q_naively(outputs: np.ndarray, action: np.ndarray) -> float:
    """Returns Q of one sample, computed with loops."""
    size = len(action)
    lower, entry = np.zeros((size, size)), size + 1
    for i in range(size):
        for j in range(i + 1):
            lower[i, j] = math.exp(outputs[entry]) if i == j else outputs[entry]
            entry += 1
    assert entry == len(outputs)
    difference = action - np.tanh(outputs[:size])
    return float(outputs[size] - 0.5 * difference @ (lower @ lower.T) @ difference)


@pytest.mark.parametrize("actions", [1, 2, 4])
def test_values_equal_naive_ones(actions) -> None:
    math_ = make_algorithm(build, HYPER, actions)
    parameters = math_.layouts["parameters"].split(make_state(math_).parameters * 3)
    batch = make_random_batch(actions=actions)
    outputs = math_.policy(parameters, batch.observation)
    expected = [
        compute_q_naively(*both)
        for both in zip(outputs.double().numpy(), batch.action.double().numpy(), strict=True)
    ]
    values = math_.values(parameters, batch.observation, batch.action)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("actions", [1, 3])
def test_the_advantage_is_nowhere_positive_and_zero_at_mu_alone(actions) -> None:
    math_ = make_algorithm(build, HYPER, actions)
    outputs = 2 * torch.randn(200, math_.policy.outputs, generator=torch.Generator().manual_seed(0))
    mu = outputs[:, :actions].tanh()
    assert torch.equal(math_.advantages(outputs, mu), torch.zeros(200))
    for seed in range(5):
        action = torch.rand(200, actions, generator=torch.Generator().manual_seed(seed)) * 2 - 1
        assert (math_.advantages(outputs, action) < 0).all()


def test_td_targets_are_the_value_of_the_best_action() -> None:
    math_ = make_algorithm(build, HYPER)
    targets = math_.layouts["targets"].split(make_state(math_).targets)
    batch = make_random_batch()
    best = math_.act(targets, batch.next_observation, ())
    expected = batch.reward + batch.discount * math_.values(targets, batch.next_observation, best)
    torch.testing.assert_close(math_.td_targets(targets, batch), expected)


@pytest.mark.parametrize("max_grad_norm", [None, 0.3])
def test_update_equals_a_module_with_an_optimizer(max_grad_norm) -> None:
    math_ = make_algorithm(
        build, HYPER.model_copy(update={"max_grad_norm": max_grad_norm}), actions=1
    )
    state = make_state(math_)
    (online,), (target,) = (
        make_modules(state.parameters, (3, 8, 8, 3)),
        make_modules(state.targets, (3, 8, 8, 3)),
    )
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-2)
    for step in range(30):
        batch = make_random_batch(seed=step, actions=1)
        state, report, error = math_.update(eager_gradient, state, batch)
        with torch.no_grad():
            wanted = batch.reward + batch.discount * target(batch.next_observation)[:, 1]
        outputs = online(batch.observation)
        value = (
            outputs[:, 1]
            - 0.5 * (2 * outputs[:, 2]).exp() * (batch.action[:, 0] - outputs[:, 0].tanh()) ** 2
        )
        loss = torch.nn.functional.mse_loss(value, wanted)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(online.parameters(), max_grad_norm or math.inf)
        optimizer.step()
        follow(target, online, 0.1)
        torch.testing.assert_close(
            report[:2], torch.stack((loss, value.mean())).detach(), rtol=1e-3, atol=1e-4
        )
        torch.testing.assert_close(error, (value - wanted).abs().detach(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.parameters, flatten([online]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.targets, flatten([target]), rtol=1e-3, atol=1e-3)


def test_both_gradients_give_the_same_update_and_change_nothing() -> None:
    math_ = make_algorithm(build, HYPER)
    state, batch = make_state(math_), make_random_batch()
    before = map_tensors(torch.clone, state), map_tensors(torch.clone, batch)
    eager, functional = (
        math_.update(gradient, state, batch) for gradient in (eager_gradient, functional_gradient)
    )
    torch.testing.assert_close(tuple(eager), tuple(functional), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close((state, batch), before, rtol=0, atol=0)


def test_large_entries_off_the_diagonal_leave_finite_gradients() -> None:
    math_ = make_algorithm(build, HYPER, actions=2)
    outputs = torch.tensor([[0.1, 0.2, 0.0, 0.5, 200.0, 0.5]])
    slope = torch.func.grad(lambda given: math_.advantages(given, torch.zeros(1, 2)).sum())(outputs)
    assert torch.isfinite(slope).all()


def test_vmap_over_four_seeds_equals_four_updates() -> None:
    math_ = make_algorithm(build, HYPER)
    states, batches = (
        [make_state(math_, seed) for seed in range(4)],
        [make_random_batch(seed=seed) for seed in range(4)],
    )
    stack, stacked_batch = stack_states(states), stack_states(batches)
    for _ in range(3):
        stack = torch.func.vmap(
            lambda state, batch: math_.update(functional_gradient, state, batch)
        )(stack, stacked_batch).state
    for seed, alone in enumerate(states):
        for _ in range(3):
            alone = math_.update(eager_gradient, alone, batches[seed]).state  # noqa: PLW2901
        torch.testing.assert_close(get_row(stack, seed), alone, rtol=1e-4, atol=1e-5)


def test_acting_in_numpy_equals_acting_in_torch() -> None:
    agent = make_replay_agent(build, HYPER)
    observation = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    quick = agent.act(observation, explore=False)
    np.testing.assert_allclose(
        quick,
        agent.algorithm.act(agent.named_parameters(), torch.from_numpy(observation), ()).numpy(),
        rtol=1e-5,
    )


def test_a_state_in_mid_training_continues_bit_exactly() -> None:
    hyper = HYPER.model_copy(update={"buffer_size": 64})
    first, rng = make_replay_agent(build, hyper, seed=3), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(13)
    second = make_replay_agent(build, hyper, seed=99)
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        rng = np.random.default_rng(1)
        agent.observe(make_experience(agent, 20, 2, rng))
        agent.learn(9)
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())


def test_discrete_actions_are_refused_with_a_remedy() -> None:
    with pytest.raises(DefinitionError, match=r"dqn, drqn, .*, which take Discrete"):
        build(HYPER, make_context(spaces.Discrete(3)))


def test_naf_learns_a_bandit() -> None:
    assert_learns_a_bandit(
        build, NafParameters(hidden_sizes=(32,), learning_rate=5e-3, learning_starts=64)
    )
