import pytest
import torch

from workers.rl.agents.common.optimizers import adam, adam_start, clip_to_norm


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5])
def test_adam_follows_torch_over_many_steps_and_a_changed_learning_rate(epsilon) -> None:
    torch.manual_seed(0)
    start = torch.randn(50)
    reference = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([reference], lr=3e-3, eps=epsilon)
    parameters, state = start, adam_start(start, 3e-3)
    for step in range(1_000):
        if step == 500:
            optimizer.param_groups[0]["lr"] = 1e-3
            state = state._replace(learning_rate=torch.tensor(1e-3))
        gradient = torch.sin(parameters * (step + 1)) * 10 ** (step % 5 - 3)
        reference.grad = gradient.clone()
        optimizer.step()
        parameters, state = adam(parameters, gradient, state, epsilon=epsilon)
        torch.testing.assert_close(parameters, reference.detach(), rtol=2e-5, atol=2e-5)
    assert int(state.step) == 1_000


def test_adam_does_not_change_its_arguments() -> None:
    parameters = torch.ones(3)
    state = adam_start(parameters, 0.1)
    adam(parameters, torch.ones(3), state)
    assert torch.equal(parameters, torch.ones(3))
    assert not state.first.any()
    assert int(state.step) == 0


@pytest.mark.parametrize("max_norm", [0.5, 5.0, 1e6])
def test_clipping_equals_torch(max_norm) -> None:
    gradient = torch.tensor([3.0, 4.0, 0.0])
    leaf = torch.zeros(3, requires_grad=True)
    leaf.grad = gradient.clone()
    expected_norm = torch.nn.utils.clip_grad_norm_([leaf], max_norm)
    clipped, norm = clip_to_norm(gradient, max_norm)
    torch.testing.assert_close(clipped, leaf.grad)
    torch.testing.assert_close(norm, expected_norm)


def test_without_a_limit_nothing_is_clipped() -> None:
    gradient = torch.tensor([3e6, 4e6])
    clipped, norm = clip_to_norm(gradient, None)
    assert torch.equal(clipped, gradient)
    assert float(norm) == pytest.approx(5e6)
