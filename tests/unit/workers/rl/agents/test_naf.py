import math

import numpy as np
import pytest
import torch

from palestra.contract.agents import NafParameters
from tests.unit.workers.rl.agents.continuous_kit import (
    flatten,
    follow,
    make_algorithm,
    make_modules,
    make_random_batch,
    make_state,
)
from workers.acceleration.update_runner import eager_gradient
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


def test_large_entries_off_the_diagonal_leave_finite_gradients() -> None:
    math_ = make_algorithm(build, HYPER, actions=2)
    outputs = torch.tensor([[0.1, 0.2, 0.0, 0.5, 200.0, 0.5]])
    slope = torch.func.grad(lambda given: math_.advantages(given, torch.zeros(1, 2)).sum())(outputs)
    assert torch.isfinite(slope).all()
