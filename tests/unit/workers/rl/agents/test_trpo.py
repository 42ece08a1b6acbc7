"""TRPO: conjugate gradients, Fisher products and line search compared with direct computations."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import TrpoParameters
from tests.unit.workers.rl.agents.agent_kit import make_context, make_experience
from workers.acceleration.update_runner import make_runner
from workers.rl.agents import trpo
from workers.rl.agents.trpo import conjugate_gradients, line_search


@pytest.mark.parametrize("seed", [0, 1])
def test_conjugate_gradients_solve_what_numpy_solves(seed) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(8, 8))
    matrix, right = root @ root.T + 0.5 * np.eye(8), rng.normal(size=8)
    product = torch.from_numpy(matrix).matmul
    got = conjugate_gradients(product, torch.from_numpy(right), 12)
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(matrix, right), rtol=1e-4, atol=1e-5)


def test_conjugate_gradients_of_nothing_are_nothing() -> None:
    assert torch.equal(
        conjugate_gradients(lambda vector: 2 * vector, torch.zeros(3), 5), torch.zeros(3)
    )
    one = conjugate_gradients(lambda vector: 2 * vector, torch.ones(3), 50)
    torch.testing.assert_close(one, torch.full((3,), 0.5))


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32)])
def test_fisher_products_equal_an_explicit_hessian_of_the_divergence(space) -> None:
    agent = trpo.build(
        TrpoParameters(hidden_sizes=(3,), damping=0.1, rollout_steps=8), make_context(space)
    )
    algorithm, parameters = agent.algorithm, agent.learning_state.parameters
    parameters = parameters + 0.3 * torch.randn(
        parameters.shape, generator=torch.Generator().manual_seed(0)
    )
    observation = torch.rand(6, 3)
    hessian = torch.autograd.functional.hessian(
        lambda vector: algorithm.divergence(parameters, vector, observation), parameters
    )
    product = algorithm.fisher_product(parameters, observation)
    for seed in range(3):
        vector = torch.randn(parameters.shape, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(
            product(vector), hessian @ vector + 0.1 * vector, rtol=1e-3, atol=1e-5
        )


def make_preset_evaluation(gains, divergences):
    """Returns a function that gives preset gains and divergences for steps of 1, 1/2, 1/4, ...

    The step is the difference from zero parameters.
    """

    def judge(vector):
        place = torch.log2(1 / vector[0]).round().long()
        return torch.tensor(gains)[place], torch.tensor(divergences)[place]

    return judge


@pytest.mark.parametrize(
    ("gains", "divergences", "length"),
    [
        ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], 1.0),
        ([-1.0, 2.0, 3.0], [0.5, 0.5, 0.5], 0.5),
        ([1.0, 2.0, 3.0], [2.0, 1.5, 0.9], 0.25),
        ([1.0, -2.0, -3.0], [2.0, 0.5, 0.5], 0.0),
        ([float("nan"), 2.0, 3.0], [float("nan"), 0.5, 0.5], 0.5),
    ],
)
def test_the_line_search_takes_the_longest_step_that_improves_within_the_region(
    gains, divergences, length
) -> None:
    moved = line_search(
        make_preset_evaluation(gains, divergences), torch.zeros(2), torch.ones(2), 1.0, 3
    )
    torch.testing.assert_close(moved, torch.full((2,), length))


def test_an_update_improves_the_surrogate_within_the_region_and_fits_the_values() -> None:
    hyper = TrpoParameters(
        rollout_steps=64, max_kl=0.01, value_minibatch_size=32, learning_rate=0.01, value_passes=10
    )
    agent, rng = trpo.build(hyper, make_context()), np.random.default_rng(0)
    losses = []
    for _ in range(3):
        agent.observe(make_experience(agent, 64, 2, rng))
        report = dict(zip(agent.report_names, agent.learn(1).values, strict=True))
        assert report["loss/policy"] < 0
        assert 0 < report["policy/kl"] <= 0.01 + 1e-6
        losses.append(report["loss/value"])
    assert losses[-1] < losses[0]


def test_no_advantage_makes_no_step() -> None:
    agent = trpo.build(TrpoParameters(rollout_steps=8, normalize_advantages=False), make_context())
    agent.observe(make_experience(agent, 8, 2, np.random.default_rng(0)))
    drawn = next(iter(agent.batches(1)))
    before = agent.learning_state
    update = make_runner(agent.algorithm.update, mode="eager")
    after = update(before, drawn._replace(advantage=torch.zeros_like(drawn.advantage))).state
    torch.testing.assert_close(after.parameters, before.parameters, rtol=0, atol=0)
    assert not torch.equal(after.values, before.values)
