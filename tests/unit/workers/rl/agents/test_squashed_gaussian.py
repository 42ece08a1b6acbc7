import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from workers.rl.agents.common import squashed_gaussian


@pytest.mark.parametrize("actions", [1, 3])
def test_the_density_is_that_of_a_transformed_normal(actions) -> None:
    g = torch.Generator().manual_seed(0)
    outputs, noise = (
        torch.randn(50, 2 * actions, generator=g).double(),
        torch.randn(50, actions, generator=g).double(),
    )
    action, log_density = squashed_gaussian.sample(outputs, noise)
    mean, log_std = outputs[:, :actions], outputs[:, actions:].clamp(-20, 2)
    # With a cache the transform does not compute atanh(1), which is infinite.
    tanh = TanhTransform(cache_size=1)
    reference = Independent(TransformedDistribution(Normal(mean, log_std.exp()), tanh), 1)
    expected = tanh(mean + log_std.exp() * noise)
    torch.testing.assert_close(log_density, reference.log_prob(expected), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(action, expected)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -0.5), (-0.8, 0.0)])
def test_the_density_integrates_to_one(mean, log_std) -> None:
    action = torch.linspace(-1, 1, 200_001, dtype=torch.float64)[1:-1]
    raw, spread = action.atanh(), torch.tensor([log_std], dtype=torch.float64)
    density = squashed_gaussian.log_density(
        raw.unsqueeze(1), ((raw - mean) / spread.exp()).unsqueeze(1), spread
    ).exp()
    assert float(torch.trapezoid(density, action)) == pytest.approx(1, abs=1e-4)
    below = action < 0.25
    share = float(torch.trapezoid(density[below], action[below]))
    assert share == pytest.approx(
        float(Normal(mean, spread.exp()).cdf(torch.tensor(0.25).atanh())), abs=1e-4
    )


def test_the_density_of_saturated_actions_is_finite_and_right() -> None:
    outputs, noise = (
        torch.tensor([[40.0, 0.0], [-40.0, 0.0], [0.0, 9.0]]),
        torch.tensor([[0.5], [0.5], [-1.0]]),
    )
    action, log_density = squashed_gaussian.sample(outputs, noise)
    assert action.abs().max() <= 1
    raw = outputs[:, 0].double() + outputs[:, 1].clamp(-20, 2).double().exp() * noise[:, 0].double()
    normal = (
        -0.5 * noise[:, 0].double() ** 2
        - outputs[:, 1].clamp(-20, 2).double()
        - 0.5 * np.log(2 * np.pi)
    )
    # The function log(1 - tanh^2) is even, so the absolute value may be inserted.
    expected = normal - 2 * (np.log(2) - raw.abs() - torch.log1p(torch.exp(-2 * raw.abs())))
    torch.testing.assert_close(log_density.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("log_std", "used"), [(-50.0, -20.0), (50.0, 2.0), (0.3, 0.3)])
def test_the_spread_is_kept_within_bounds(log_std, used) -> None:
    action, log_density = squashed_gaussian.sample(
        torch.tensor([[0.1, log_std]]), torch.tensor([[0.4]])
    )
    expected, expected_density = squashed_gaussian.sample(
        torch.tensor([[0.1, used]]), torch.tensor([[0.4]])
    )
    assert torch.equal(action, expected)
    assert torch.equal(log_density, expected_density)


def test_arrays_give_the_same_actions_stacked_or_not() -> None:
    rng = np.random.default_rng(0)
    outputs, noise = (
        rng.normal(0, 3, (2, 5, 6)).astype(np.float32),
        rng.normal(size=(2, 5, 3)).astype(np.float32),
    )
    tensors = torch.from_numpy(outputs), torch.from_numpy(noise)
    np.testing.assert_allclose(
        squashed_gaussian.act_arrays(outputs, noise),
        squashed_gaussian.sample(*tensors)[0].numpy(),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        squashed_gaussian.act_arrays(outputs, None),
        squashed_gaussian.mode(tensors[0]).numpy(),
        rtol=1e-5,
        atol=1e-6,
    )
