"""RMSprop compared with torch's, and with the formula of TensorFlow's."""

import numpy as np
import pytest
import torch

from workers.rl.agents.common.optimizers import rmsprop, rmsprop_start


@pytest.mark.parametrize(("decay", "epsilon"), [(0.99, 1e-8), (0.9, 1e-3)])
def test_thirty_updates_equal_torch(decay, epsilon) -> None:
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(20, generator=generator)
    leaf = vector.clone().requires_grad_()
    reference = torch.optim.RMSprop([leaf], lr=0.01, alpha=decay, eps=epsilon)
    state = rmsprop_start(vector, 0.01)
    for _ in range(30):
        gradient = torch.randn(20, generator=generator)
        vector, state = rmsprop(vector, gradient, state, decay=decay, epsilon=epsilon)
        leaf.grad = gradient
        reference.step()
    torch.testing.assert_close(vector, leaf.detach(), rtol=1e-5, atol=1e-6)


def test_epsilon_under_the_root_equals_a_calculation_by_hand() -> None:
    vector, gradient = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])
    state = rmsprop_start(vector, 0.1, uses_inner_epsilon=True)
    moved, after = rmsprop(
        vector, gradient, state, decay=0.9, epsilon=0.01, uses_inner_epsilon=True
    )
    square = 0.9 * 1.0 + 0.1 * np.square([0.5, 3.0])
    np.testing.assert_allclose(after.square.numpy(), square, rtol=1e-6)
    np.testing.assert_allclose(
        moved.numpy(),
        np.array([1.0, -2.0]) - 0.1 * np.array([0.5, 3.0]) / np.sqrt(square + 0.01),
        rtol=1e-6,
    )
    assert torch.equal(state.square, torch.ones(2))
