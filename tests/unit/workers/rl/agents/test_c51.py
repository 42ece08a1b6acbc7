import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from palestra.contract.agents import C51Parameters, RainbowParameters
from tests.unit.workers.rl.agents.agent_kit import make_context
from tests.unit.workers.rl.agents.q_kit import make_algorithm, make_random_batch, make_state
from workers.acceleration.update_runner import eager_gradient
from workers.assembly.registry import make_agent
from workers.rl.agents.c51 import CategoricalDqn, project_distribution
from workers.rl.memory.sampling_rules import PrioritizedRule
from workers.rl.networks.dueling import DuelingHead

HYPER = C51Parameters(
    hidden_sizes=(8,),
    atoms=7,
    v_min=-2.0,
    v_max=4.0,
    max_grad_norm=0.3,
    target_update_every=7,
    learning_rate=1e-2,
)


def project_naively(probabilities, reward, discount, support):
    """Computes algorithm 1 of the paper atom by atom.

    If b is an integer, both neighbours are the same atom, which gets the whole probability.
    """
    low, high, width = support[0], support[-1], support[1] - support[0]
    result = np.zeros_like(probabilities)
    for n, row in enumerate(probabilities):
        for j, p in enumerate(row):
            b = (min(max(reward[n] + discount[n] * support[j], low), high) - low) / width
            lower, upper = math.floor(b), math.ceil(b)
            if lower == upper:
                result[n, lower] += p
            else:
                result[n, lower] += p * (upper - b)
                result[n, upper] += p * (b - lower)
    return result


@pytest.mark.parametrize("atoms", [2, 5, 51])
def test_projection_equals_algorithm_1(atoms) -> None:
    rng = np.random.default_rng(atoms)
    support = np.linspace(-3, 5, atoms)
    probabilities = rng.dirichlet(np.ones(atoms), 40)
    reward, discount = rng.normal(0, 3, 40), rng.choice([0.0, 0.9, 0.99**3], 40)
    reward[:3], discount[:3] = (-3.0, 5.0, 1.0), 0.0
    columns = (torch.tensor(array) for array in (probabilities, reward, discount, support))
    result = project_distribution(*columns).numpy()
    np.testing.assert_allclose(
        result, project_naively(probabilities, reward, discount, support), atol=1e-12
    )
    np.testing.assert_allclose(result.sum(1), 1.0)


def test_the_projection_equals_a_calculation_by_hand() -> None:
    """With atoms at 0, 1 and 2, a value of 1.5 is divided equally between two atoms.

    Integer values get one atom; values outside the support go to the nearest end.
    """
    support = torch.tensor([0.0, 1.0, 2.0])
    sure = torch.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    result = project_distribution(
        sure, torch.tensor([0.5, 0.0, 7.0, 1.0]), torch.tensor([0.5, 1.0, 1.0, 0.0]), support
    )
    assert result.tolist() == [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def test_values_and_loss_equal_a_calculation_by_hand() -> None:
    algorithm = make_algorithm(C51Parameters(hidden_sizes=(), atoms=3, v_min=0.0, v_max=2.0))
    logits = torch.tensor(
        [[[0.0, 0.0, 0.0], [-99.0, 0.0, 0.0], [0.0, -99.0, -99.0], [-99.0, -99.0, 0.0]]]
    )
    torch.testing.assert_close(algorithm.values(logits), torch.tensor([[1.0, 1.5, 0.0, 2.0]]))
    parameters = {"q.0.weight": torch.zeros(12, 3), "q.0.bias": torch.zeros(12)}
    batch = make_random_batch(algorithm, 2)._replace(weight=torch.tensor([1.0, 0.5]))
    target = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    loss, (value, divergence) = algorithm.loss(parameters, batch, target)
    assert float(loss) == pytest.approx(math.log(3) * 0.75)
    assert float(value) == pytest.approx(1.0)
    assert divergence.tolist() == pytest.approx([math.log(3), math.log(3) - math.log(2)])


def make_module() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4 * 7), nn.Unflatten(1, (4, 7)))


@pytest.mark.parametrize("double", [True, False])
def test_update_equals_a_module_with_an_optimizer(double) -> None:
    algorithm = make_algorithm(HYPER.model_copy(update={"double": double}))
    state, online, target = make_state(algorithm), make_module(), make_module()
    nn.utils.vector_to_parameters(state.parameters, online.parameters())
    nn.utils.vector_to_parameters(state.targets, target.parameters())
    support, rows = torch.linspace(-2, 4, 7), torch.arange(16)
    reference = torch.optim.Adam(online.parameters(), lr=1e-2)
    for step in range(1, 31):
        batch = make_random_batch(algorithm, seed=step)
        state, report, error = algorithm.update(eager_gradient, state, batch)
        state = algorithm.copy_targets(state, step)
        with torch.no_grad():
            best = (
                (online if double else target)(batch.next_observation)
                .softmax(2)
                .mul(support)
                .sum(2)
                .argmax(1)
            )
            following = target(batch.next_observation).softmax(2)[rows, best].double().numpy()
            columns = (
                column.double().numpy() for column in (batch.reward, batch.discount, support)
            )
            wanted = torch.tensor(project_naively(following, *columns), dtype=torch.float32)
        log_p = online(batch.observation)[rows, batch.action].log_softmax(1)
        value = (-(wanted * log_p).sum(1) * batch.weight).mean()
        divergence = nn.functional.kl_div(log_p.detach(), wanted, reduction="none").sum(1)
        reference.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 0.3)
        reference.step()
        if step % 7 == 0:
            target.load_state_dict(online.state_dict())
        torch.testing.assert_close(report[0], value.detach(), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(error, divergence, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(
        state.parameters, nn.utils.parameters_to_vector(online.parameters()), rtol=1e-3, atol=1e-3
    )
    torch.testing.assert_close(
        state.targets, nn.utils.parameters_to_vector(target.parameters()), rtol=1e-3, atol=1e-3
    )


def test_the_distribution_of_a_chain_is_learnt() -> None:
    """The chain ends with -1 or 1, each with probability one half.

    A correct distribution has two peaks; a mean alone would not show them.
    """
    algorithm = make_algorithm(
        C51Parameters(
            hidden_sizes=(),
            atoms=3,
            v_min=-1.0,
            v_max=1.0,
            target_update_every=10,
            learning_rate=0.05,
        )
    )
    state, rng = make_state(algorithm), np.random.default_rng(0)
    for step in range(200):
        ends = torch.from_numpy(rng.choice([-1.0, 1.0], 32).astype(np.float32))
        batch = make_random_batch(algorithm, 32)
        zeros = torch.zeros(32)
        batch = batch._replace(
            observation=torch.ones(32, 3),
            reward=ends,
            discount=zeros,
            weight=zeros + 1,
            action=zeros.long(),
        )
        state = algorithm.copy_targets(
            algorithm.update(eager_gradient, state, batch).state, step + 1
        )
    logits = algorithm.network(algorithm.layout.split(state.parameters), torch.ones(1, 3))[0, 0]
    np.testing.assert_allclose(logits.softmax(0).numpy(), [0.5, 0.0, 0.5], atol=0.15)


@pytest.mark.parametrize("kind", [C51Parameters, RainbowParameters])
@pytest.mark.parametrize("least", [1.0, 2.0])
def test_v_min_must_lie_below_v_max(kind, least) -> None:
    with pytest.raises(ValidationError, match="must lie below v_max"):
        kind(v_min=least, v_max=1.0)


def test_rainbow_combines_its_extensions() -> None:
    agent = make_agent(RainbowParameters(n_step=4, atoms=11, learning_rate=0.5), make_context())
    algorithm = agent.algorithm
    assert isinstance(algorithm, CategoricalDqn)
    assert isinstance(algorithm.network.head, DuelingHead)
    assert algorithm.network.head.is_noisy
    assert algorithm.network.atoms == 11
    assert algorithm.hyper.double
    assert agent.memory.spec.n_step == 4
    assert isinstance(agent.memory.rule, PrioritizedRule)
    assert agent.memory.rule._constants.alpha == 0.5
    assert agent.learning_rate == 0.5
    assert agent.metrics()["explore/epsilon"] == 0.0


def test_rainbow_takes_other_noise_for_each_of_its_three_evaluations() -> None:
    algorithm = make_algorithm(RainbowParameters(hidden_sizes=(8,), atoms=5, v_min=-1.0, v_max=1.0))
    split, state, batch = (
        algorithm.layout.split,
        make_state(algorithm),
        make_random_batch(algorithm),
    )
    online, of_target, of_choice = batch.noise
    parameters, targets = split(state.parameters), split(state.targets)
    best = algorithm.values(
        algorithm.network(parameters, batch.next_observation, of_choice)
    ).argmax(1)
    following = algorithm.network(targets, batch.next_observation, of_target).softmax(2)[
        torch.arange(16), best
    ]
    wanted = project_distribution(following, batch.reward, batch.discount, torch.linspace(-1, 1, 5))
    torch.testing.assert_close(algorithm.td_targets(parameters, targets, batch), wanted)
    logits = algorithm.network(parameters, batch.observation, online)[
        torch.arange(16), batch.action
    ]
    expected = (-(wanted * logits.log_softmax(1)).sum(1) * batch.weight).mean()
    torch.testing.assert_close(algorithm.loss(parameters, batch, wanted)[0], expected)
