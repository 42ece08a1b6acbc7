import math

import numpy as np
import pytest
import torch
from torch import nn

from palestra.contract.agents.common import PrioritizedReplay
from palestra.contract.agents.q_learning import QrDqnParameters
from tests.unit.workers.rl.agents.agent_kit import make_context, make_experience
from tests.unit.workers.rl.agents.q_kit import make_algorithm, make_random_batch, make_state
from workers.acceleration.update_runner import eager_gradient
from workers.assembly.registry import make_agent
from workers.rl.agents.qr_dqn import midpoints
from workers.rl.memory.sampling_rules import PrioritizedRule
from workers.rl.networks.dueling import DuelingHead

HYPER = QrDqnParameters(
    hidden_sizes=(8,),
    quantiles=5,
    target_update_every=7,
    max_grad_norm=0.3,
    learning_rate=1e-2,
)
ALL_OPTIONS = QrDqnParameters(
    hidden_sizes=(8,),
    quantiles=5,
    double=True,
    dueling=True,
    noisy=True,
    n_step=3,
    prioritized=PrioritizedReplay(),
)


def compute_targets_naively(reward, discount, following, choosing) -> list[list[float]]:
    """Returns T theta_j of algorithm 1, computed sample by sample.

    Args:
       reward: Rewards [B].
       discount: gamma^n [B]; 0 where the episode terminated.
       following: Quantiles of the target network after the n steps [B, A, N].
       choosing: Quantiles of the network that chooses a* [B, A, N].
    """
    targets = []
    for b, quantiles in enumerate(following.tolist()):
        means = [sum(row) / len(row) for row in choosing[b].tolist()]
        best = means.index(max(means))
        targets.append([float(reward[b]) + float(discount[b]) * one for one in quantiles[best]])
    return targets


def compute_loss_naively(quantiles, targets, weight, kappa) -> float:
    """Returns the weighted quantile Huber loss, computed with loops.

    It is the mean over samples of w times the sum over i of the mean over j of rho(T theta_j -
    theta_i).
    """
    total = 0.0
    for b, row in enumerate(quantiles.tolist()):
        for i, theta in enumerate(row):
            tau = (2 * i + 1) / (2 * len(row))
            for wanted in targets[b]:
                u = wanted - theta
                huber = 0.5 * u**2 if abs(u) <= kappa else kappa * (abs(u) - 0.5 * kappa)
                rho = abs(tau - (1.0 if u < 0 else 0.0)) * huber / kappa
                total += float(weight[b]) * rho / len(row)
    return total / len(quantiles)


def make_module() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4 * 5), nn.Unflatten(1, (4, 5)))


def load_module(vector) -> nn.Module:
    result = make_module()
    nn.utils.vector_to_parameters(vector, result.parameters())
    return result


def test_the_midpoints_of_four_quantiles_are_odd_eighths() -> None:
    assert midpoints(4, torch.device("cpu")).tolist() == [0.125, 0.375, 0.625, 0.875]


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_targets_and_loss_equal_loops_over_samples_and_quantiles(double, kappa) -> None:
    algorithm = make_algorithm(HYPER.model_copy(update={"double": double, "kappa": kappa}))
    state, batch = make_state(algorithm), make_random_batch(algorithm, 64)
    batch = batch._replace(discount=torch.tensor([0.0, 0.99, 0.99**2, 0.99**3]).repeat(16))
    online, target = load_module(state.parameters), load_module(state.targets)
    split = algorithm.layout.split
    with torch.no_grad():
        following, choosing = (
            network(batch.next_observation) for network in (target, online if double else target)
        )
        # The networks choose different actions a* in this batch.
        assert not torch.equal(
            target(batch.next_observation).mean(2).argmax(1),
            online(batch.next_observation).mean(2).argmax(1),
        )
        taken = online(batch.observation)[torch.arange(64), batch.action]
        td_targets = algorithm.td_targets(split(state.parameters), split(state.targets), batch)
        loss, (value, error) = algorithm.loss(split(state.parameters), batch, td_targets)
    wanted = compute_targets_naively(batch.reward, batch.discount, following, choosing)
    torch.testing.assert_close(td_targets, torch.tensor(wanted))
    assert (td_targets[0] == batch.reward[0]).all(), "behind a terminal state nothing follows"
    assert float(loss) == pytest.approx(
        compute_loss_naively(taken, wanted, batch.weight, kappa), rel=1e-5
    )
    assert float(value) == pytest.approx(float(taken.mean()), rel=1e-5)
    means = torch.tensor(wanted).mean(1)
    torch.testing.assert_close(error, (means - taken.mean(1)).abs())


def test_the_loss_equals_a_calculation_by_hand() -> None:
    """The quantiles at 0.25 and 0.75 are 0 and 2, the targets 1 and 4.

    The loss of the first, with errors 1 and 4, is 0.25 (0.5 + 3.5) / 2; that of the second, with
    errors -1 and 2, is (0.25 * 0.5 + 0.75 * 1.5) / 2.
    """
    algorithm = make_algorithm(QrDqnParameters(hidden_sizes=(), quantiles=2))
    parameters = {"q.0.weight": torch.zeros(8, 3), "q.0.bias": torch.tensor([0.0, 2.0]).repeat(4)}
    batch = make_random_batch(algorithm, 2)._replace(weight=torch.tensor([1.0, 0.5]))
    target = torch.tensor([[1.0, 4.0], [0.0, 2.0]])
    loss, (value, error) = algorithm.loss(parameters, batch, target)
    second = (0.25 * 1.5 + 0.25 * 1.5) / 2
    assert float(loss) == pytest.approx((0.5 + 0.625 + 0.5 * second) / 2)
    assert float(value) == 1.0
    assert error.tolist() == [1.5, 0.0]


@pytest.mark.parametrize("double", [True, False])
def test_update_equals_a_module_with_an_optimizer(double) -> None:
    algorithm = make_algorithm(HYPER.model_copy(update={"double": double}))
    state, rows = make_state(algorithm), torch.arange(16)
    online, target = load_module(state.parameters), load_module(state.targets)
    reference = torch.optim.Adam(online.parameters(), lr=1e-2)
    tau = (torch.arange(5) + 0.5) / 5
    for step in range(1, 31):
        batch = make_random_batch(algorithm, seed=step)
        state, report, _ = algorithm.update(eager_gradient, state, batch)
        state = algorithm.copy_targets(state, step)
        with torch.no_grad():
            following = target(batch.next_observation)
            choosing = online(batch.next_observation) if double else following
            wanted = torch.tensor(
                compute_targets_naively(batch.reward, batch.discount, following, choosing)
            )
        quantiles = online(batch.observation)[rows, batch.action]
        error = wanted[:, None, :] - quantiles[:, :, None]
        huber = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none")
        rho = (tau[:, None] - (error.detach() < 0).float()).abs() * huber
        value = (rho.mean(2).sum(1) * batch.weight).mean()
        reference.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 0.3)
        reference.step()
        if step % 7 == 0:
            target.load_state_dict(online.state_dict())
        torch.testing.assert_close(report[0], value.detach(), rtol=1e-3, atol=1e-4)
    for vector, network in ((state.parameters, online), (state.targets, target)):
        torch.testing.assert_close(
            vector, nn.utils.parameters_to_vector(network.parameters()), rtol=1e-3, atol=1e-3
        )


def test_a_non_finite_target_network_never_reaches_terminal_targets() -> None:
    algorithm = make_algorithm(HYPER)
    broken = algorithm.layout.split(make_state(algorithm).targets * math.nan)
    batch = make_random_batch(algorithm)._replace(discount=torch.zeros(16))
    assert torch.equal(
        algorithm.td_targets(broken, broken, batch), batch.reward.unsqueeze(1).expand(-1, 5)
    )


def test_returns_over_n_steps_and_their_discount_reach_the_batch() -> None:
    agent = make_agent(ALL_OPTIONS, make_context())
    assert agent.memory.spec.n_step == 3
    assert isinstance(agent.memory.rule, PrioritizedRule)
    agent.observe(make_experience(agent, 40, 2, np.random.default_rng(0)))
    drawn = next(iter(agent.batches(1))).batch
    assert {round(float(one), 4) for one in drawn.discount} <= {
        # The episode terminated within the steps.
        0.0,
        # There are fewer steps where the episode was cut off.
        *(round(0.99**n, 4) for n in (1, 2, 3)),
    }
    assert round(0.99**3, 4) in {round(float(one), 4) for one in drawn.discount}


def test_all_options_together_take_other_noise_for_each_network() -> None:
    algorithm = make_algorithm(ALL_OPTIONS)
    assert isinstance(algorithm.network.head, DuelingHead)
    assert algorithm.network.head.is_noisy
    split, state, batch = (
        algorithm.layout.split,
        make_state(algorithm),
        make_random_batch(algorithm),
    )
    parameters, targets, rows = split(state.parameters), split(state.targets), torch.arange(16)
    of_online, of_target, of_choice = batch.noise
    best = algorithm.network(parameters, batch.next_observation, of_choice).mean(2).argmax(1)
    following = algorithm.network(targets, batch.next_observation, of_target)[rows, best]
    wanted = batch.reward[:, None] + batch.discount[:, None] * following
    torch.testing.assert_close(algorithm.td_targets(parameters, targets, batch), wanted)
    taken = algorithm.network(parameters, batch.observation, of_online)[rows, batch.action]
    loss, _ = algorithm.loss(parameters, batch, wanted)
    assert float(loss) == pytest.approx(
        compute_loss_naively(taken, wanted.tolist(), batch.weight, 1.0), rel=1e-5
    )


def test_the_quantiles_of_two_equally_likely_rewards_are_learnt() -> None:
    """The reward is 0 or 1: quantiles below one half are 0, those above it 1."""
    algorithm = make_algorithm(
        QrDqnParameters(hidden_sizes=(16,), quantiles=4, learning_rate=1e-2, kappa=0.1)
    )
    state, rng, zeros = make_state(algorithm), np.random.default_rng(0), torch.zeros(32)
    for step in range(300):
        coin = torch.from_numpy(rng.integers(2, size=32).astype(np.float32))
        batch = make_random_batch(algorithm, 32, seed=step)._replace(
            observation=torch.ones(32, 3),
            reward=coin,
            discount=zeros,
            weight=zeros + 1,
            action=zeros.long(),
        )
        state = algorithm.copy_targets(
            algorithm.update(eager_gradient, state, batch).state, step + 1
        )
    learnt = algorithm.network(algorithm.layout.split(state.parameters), torch.ones(1, 3))[0, 0]
    np.testing.assert_allclose(learnt.numpy(), [0, 0, 1, 1], atol=0.2)


def test_the_defaults_are_those_of_the_paper() -> None:
    hyper = QrDqnParameters()
    assert (hyper.quantiles, hyper.kappa, hyper.double, hyper.n_step) == (200, 1.0, False, 1)
