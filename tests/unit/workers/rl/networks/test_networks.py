import pytest
import torch

from workers.rl.networks.initialisation import DDPG_BOUND
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.parameter_layout import Layout


def test_layout_split_is_the_inverse_of_join() -> None:
    layout = Layout({"a": (2, 3), "b": (), "c": (4,)})
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(7.0), "c": torch.arange(4.0)}
    vector = layout.join(tensors)
    assert layout.size == vector.numel() == 11
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in layout.split(vector).items())


def test_layout_join_refuses_another_network() -> None:
    layout = Layout({"a": (2, 3)})
    with pytest.raises(ValueError, match="do not fit"):
        layout.join({"a": torch.zeros(3, 2)})
    with pytest.raises(ValueError, match="do not fit"):
        layout.join({"b": torch.zeros(2, 3)})


@pytest.mark.parametrize(
    ("activation", "module"), [("relu", torch.nn.ReLU), ("tanh", torch.nn.Tanh)]
)
@pytest.mark.parametrize("hidden", [(), (5,), (5, 7)])
def test_mlp_equals_a_sequential_module(activation, module, hidden) -> None:
    mlp = Mlp("q", (3, *hidden, 2), activation)
    parameters = mlp.draw_uniform(torch.Generator().manual_seed(1))
    layers: list[torch.nn.Module] = []
    for index in range(len(hidden) + 1):
        weight = parameters[f"q.{index}.weight"]
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.load_state_dict({"weight": weight, "bias": parameters[f"q.{index}.bias"]})
        layers += [layer, module()]
    inputs = torch.randn(6, 3)
    torch.testing.assert_close(mlp(parameters, inputs), torch.nn.Sequential(*layers[:-1])(inputs))
    assert {name: tuple(tensor.shape) for name, tensor in parameters.items()} == mlp.shapes()


def test_initial_uniform_is_within_the_bounds_of_a_linear_layer_and_depends_on_the_seed_alone() -> (
    None
):
    mlp = Mlp("q", (16, 400, 2))
    first = mlp.draw_uniform(torch.Generator().manual_seed(3))
    again = mlp.draw_uniform(torch.Generator().manual_seed(3))
    other = mlp.draw_uniform(torch.Generator().manual_seed(4))
    assert first["q.0.weight"].abs().max() <= 0.25
    assert first["q.0.weight"].abs().max() > 0.24
    assert first["q.1.bias"].abs().max() <= 0.05
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["q.0.weight"], other["q.0.weight"])


def test_initial_orthogonal_has_orthogonal_rows_of_the_gain() -> None:
    parameters = Mlp("v", (8, 6, 3), "tanh").draw_orthogonal(
        torch.Generator().manual_seed(0), gain=0.5
    )
    hidden, last = parameters["v.0.weight"], parameters["v.1.weight"]
    torch.testing.assert_close(hidden @ hidden.T, 2 * torch.eye(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(last @ last.T, 0.25 * torch.eye(3), atol=1e-5, rtol=0)
    assert not parameters["v.0.bias"].any()


def test_the_last_layer_may_begin_near_zero() -> None:
    parameters = Mlp("a", (16, 32, 4)).draw_uniform(
        torch.Generator().manual_seed(0), last=DDPG_BOUND
    )
    assert 0.2 < parameters["a.0.weight"].abs().max() <= 0.25
    assert 0.0025 < parameters["a.1.weight"].abs().max() <= 0.003
    assert parameters["a.1.bias"].abs().max() <= 0.003


def test_features_are_activated_and_one_size_alone_is_the_identity() -> None:
    torso, inputs = Mlp("t", (3, 5), has_last_activation=True), torch.randn(4, 3)
    parameters = torso.draw_uniform(torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        torso(parameters, inputs),
        torch.relu(inputs @ parameters["t.0.weight"].T + parameters["t.0.bias"]),
    )
    assert Mlp("t", (3,))({}, inputs) is inputs
    assert Mlp("t", (3,)).shapes() == {}
