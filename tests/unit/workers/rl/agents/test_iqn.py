import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from palestra.contract.agents import IqnParameters
from tests.unit.workers.rl.agents.q_kit import make_algorithm, make_random_batch, make_state
from workers.acceleration.update_runner import eager_gradient
from workers.rl.agents.common.quantile_regression import quantile_huber

HYPER = IqnParameters(
    hidden_sizes=(8, 6),
    fractions=3,
    target_fractions=5,
    acting_fractions=4,
    cosines=6,
    target_update_every=7,
    max_grad_norm=0.3,
)


def compute_loss_naively(error: float, tau: float, kappa: float) -> float:
    huber = 0.5 * error**2 if abs(error) <= kappa else kappa * (abs(error) - 0.5 * kappa)
    return abs(tau - (1.0 if error < 0 else 0.0)) * huber / kappa


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_quantile_huber_loss_equals_its_formula(kappa) -> None:
    g = torch.Generator().manual_seed(0)
    error, tau = (
        2 * torch.randn(4, 3, 5, generator=g, dtype=torch.float64),
        torch.rand(4, 3, generator=g, dtype=torch.float64),
    )
    result = quantile_huber(error, tau, kappa)
    for b, i, j in np.ndindex(4, 3, 5):
        assert float(result[b, i, j]) == pytest.approx(
            compute_loss_naively(float(error[b, i, j]), float(tau[b, i]), kappa)
        )


def test_the_quantile_huber_loss_equals_a_calculation_by_hand() -> None:
    error = torch.tensor([[[0.5, -0.5, 3.0, -3.0]]])
    torch.testing.assert_close(
        quantile_huber(error, torch.tensor([[0.25]]), 1.0),
        torch.tensor([[[0.03125, 0.09375, 0.625, 1.875]]]),
    )


def test_the_loss_is_minimal_at_the_quantile() -> None:
    """For the values 0, 1, …, 100 the quantile of 0.9 is 90, up to the width of the
    quadratic part.
    """
    samples, at = torch.arange(101.0), torch.arange(80.0, 100.0, 0.5)
    losses = [
        quantile_huber((samples - q).view(1, 1, -1), torch.tensor([[0.9]]), 0.1).mean() for q in at
    ]
    assert abs(float(at[int(torch.stack(losses).argmin())]) - 90) <= 1


class Module(nn.Module):
    """The network of the paper as torch modules."""

    def __init__(self) -> None:
        super().__init__()
        self.psi, self.phi = nn.Linear(3, 8), nn.Linear(6, 8)
        self.hidden, self.out = nn.Linear(8, 6), nn.Linear(6, 4)

    def forward(self, observation: Tensor, tau: Tensor) -> Tensor:
        cosines = torch.stack([torch.cos(math.pi * i * tau) for i in range(6)], -1)
        joined = torch.relu(self.psi(observation)).unsqueeze(1) * torch.relu(self.phi(cosines))
        return self.out(torch.relu(self.hidden(joined)))


@pytest.mark.parametrize("double", [True, False])
def test_update_equals_a_module_with_an_optimizer(double) -> None:
    algorithm = make_algorithm(HYPER.model_copy(update={"double": double}))
    state, online, target = make_state(algorithm), Module(), Module()
    nn.utils.vector_to_parameters(state.parameters, online.parameters())
    nn.utils.vector_to_parameters(state.targets, target.parameters())
    reference = torch.optim.Adam(online.parameters(), lr=1e-3)
    for step in range(1, 31):
        batch = make_random_batch(algorithm, 6, seed=step)
        tau, tau_target, tau_choice = batch.noise
        assert [one.shape for one in batch.noise] == [(6, 3), (6, 5), (6, 4)]
        state, report, _ = algorithm.update(eager_gradient, state, batch)
        state = algorithm.copy_targets(state, step)
        with torch.no_grad():
            best = (
                (online if double else target)(batch.next_observation, tau_choice).mean(1).argmax(1)
            )
            following = target(batch.next_observation, tau_target)
        quantiles, value = online(batch.observation, tau), torch.zeros(())
        for b in range(6):
            for i in range(3):
                for j in range(5):
                    wanted = batch.reward[b] + batch.discount[b] * following[b, j, best[b]]
                    error = wanted - quantiles[b, i, batch.action[b]]
                    huber = nn.functional.huber_loss(error, torch.zeros(()))
                    value = value + batch.weight[b] * (
                        tau[b, i] - float(error < 0)
                    ).abs() * huber / (6 * 5)
        reference.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 0.3)
        reference.step()
        if step % 7 == 0:
            target.load_state_dict(online.state_dict())
        torch.testing.assert_close(report[0], value.detach(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        state.parameters, nn.utils.parameters_to_vector(online.parameters()), rtol=1e-3, atol=1e-4
    )
    torch.testing.assert_close(
        state.targets, nn.utils.parameters_to_vector(target.parameters()), rtol=1e-3, atol=1e-4
    )


def test_a_non_finite_target_network_never_reaches_terminal_targets() -> None:
    algorithm = make_algorithm(HYPER)
    state = make_state(algorithm)
    broken = algorithm.layout.split(state.targets * math.nan)
    batch = make_random_batch(algorithm)._replace(discount=torch.zeros(16))
    assert torch.equal(
        algorithm.td_targets(broken, broken, batch), batch.reward.unsqueeze(1).expand(-1, 5)
    )


def test_fractions_lie_between_0_and_1_and_greedy_ones_are_even() -> None:
    algorithm = make_algorithm(HYPER)
    noise = algorithm.noise(np.random.default_rng(0), (4, 9))
    assert [(one.shape, one.dtype) for one in noise] == [
        ((4, 9, count), np.float32) for count in (3, 5, 4)
    ]
    assert all((one >= 0).all() and (one < 1).all() for one in noise)
    parameters = algorithm.layout.split(make_state(algorithm).parameters)
    observation = torch.randn(20, 3)
    even = torch.tensor([0.125, 0.375, 0.625, 0.875]).expand(20, 4)
    assert torch.equal(
        algorithm.act(parameters, observation, ()), algorithm.act(parameters, observation, (even,))
    )


def test_the_quantiles_of_two_equally_likely_rewards_are_learnt() -> None:
    """The reward is 0 or 1: quantiles below one half are 0, the others 1."""
    algorithm = make_algorithm(IqnParameters(hidden_sizes=(16,), learning_rate=1e-2, kappa=0.1))
    state, rng, zeros = make_state(algorithm), np.random.default_rng(0), torch.zeros(32)
    for step in range(300):
        batch = make_random_batch(algorithm, 32, seed=step)
        coin = torch.from_numpy(rng.integers(2, size=32).astype(np.float32))
        batch = batch._replace(
            observation=torch.ones(32, 3),
            reward=coin,
            discount=zeros,
            weight=zeros + 1,
            action=zeros.long(),
        )
        state = algorithm.copy_targets(
            algorithm.update(eager_gradient, state, batch).state, step + 1
        )
    tau = torch.tensor([[0.1, 0.25, 0.75, 0.9]])
    learnt = algorithm.network(algorithm.layout.split(state.parameters), torch.ones(1, 3), tau)[
        0, :, 0
    ]
    np.testing.assert_allclose(learnt.numpy(), [0, 0, 1, 1], atol=0.2)
