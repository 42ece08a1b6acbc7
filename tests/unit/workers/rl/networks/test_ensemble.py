import numpy as np
import torch

from workers.rl.networks.ensemble import Ensemble
from workers.rl.networks.mlp import Mlp


def get_member(parameters, index):
    return {name: tensor[index] for name, tensor in parameters.items()}


def test_each_member_is_a_network_of_its_own() -> None:
    ensemble, alone = Ensemble("q", 3, (4, 8, 5, 2), "tanh"), Mlp("q", (4, 8, 5, 2), "tanh")
    parameters = ensemble.draw_uniform(torch.Generator().manual_seed(0))
    assert {name: tuple(tensor.shape) for name, tensor in parameters.items()} == ensemble.shapes()
    inputs = torch.randn(7, 4)
    outputs = ensemble(parameters, inputs)
    assert outputs.shape == (3, 7, 2)
    for index in range(3):
        torch.testing.assert_close(outputs[index], alone(get_member(parameters, index), inputs))
    assert not torch.equal(outputs[0], outputs[1])


def test_the_first_member_can_be_evaluated_alone() -> None:
    ensemble = Ensemble("q", 2, (4, 8, 1))
    parameters = ensemble.draw_uniform(torch.Generator().manual_seed(0))
    inputs = torch.randn(7, 4)
    first = ensemble(ensemble.first(parameters), inputs)
    assert first.shape == (1, 7, 1)
    torch.testing.assert_close(first[0], ensemble(parameters, inputs)[0])


def test_members_begin_within_the_bounds_of_a_linear_layer() -> None:
    parameters = Ensemble("q", 2, (100, 16, 1)).draw_uniform(torch.Generator().manual_seed(0))
    bound = float(parameters["q.0.weight"].abs().max())
    assert 0.09 < bound <= 0.1
    np.testing.assert_array_less(parameters["q.1.weight"].abs().numpy(), 0.25 + 1e-6)


def test_gradients_and_stacked_seeds_equal_those_of_single_networks() -> None:
    ensemble = Ensemble("q", 2, (4, 8, 1))
    sets = [ensemble.draw_uniform(torch.Generator().manual_seed(seed)) for seed in range(3)]
    stack = {name: torch.stack([one[name] for one in sets]) for name in sets[0]}
    inputs = torch.randn(3, 7, 4)
    slope = torch.func.vmap(
        torch.func.grad(lambda parameters, rows: ensemble(parameters, rows).square().sum())
    )(stack, inputs)
    for seed, parameters in enumerate(sets):
        alone = torch.func.grad(lambda own, seed=seed: ensemble(own, inputs[seed]).square().sum())(
            parameters
        )
        for name, tensor in alone.items():
            torch.testing.assert_close(slope[name][seed], tensor)
