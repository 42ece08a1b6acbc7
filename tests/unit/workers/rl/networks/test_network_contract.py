"""The interface between agents and every network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.cosine_embedding import CosineEmbedding
from workers.rl.networks.dueling import DuelingHead
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.nature_cnn import NatureCnn
from workers.rl.networks.noisy import NoisyMlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.parameter_layout import Layout
from workers.rl.networks.recurrent import RecurrentLayer
from workers.rl.networks.running_normaliser import normalise


@dataclass(frozen=True)
class Case:
    network: Any
    inputs: Callable[[int], tuple[Tensor, ...]]
    """Inputs for N samples."""
    call: Callable[..., Tensor] | None = None

    def __call__(self, parameters, *inputs) -> Tensor:
        return (self.call or self.network)(parameters, *inputs)


def make_vector_inputs(size: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda count: (torch.linspace(-1, 1, count * size).view(count, size),)


MLP = Mlp("q", (5, 8, 3), "tanh")
NOISY = NoisyMlp("q", (5, 8, 3))
DUELING = DuelingHead("q", 5, actions=3, hidden=(8,), atoms=4, is_noisy=True)
COSINES = CosineEmbedding("tau", features=6, cosines=8)
LSTM, GRU = RecurrentLayer("m", 3, 4), RecurrentLayer("m", 3, 4, "gru")
CASES = {
    "mlp": Case(MLP, make_vector_inputs(5)),
    "features": Case(Mlp("q", (5, 8), has_last_activation=True), make_vector_inputs(5)),
    "cnn": Case(
        NatureCnn("q", (36, 40, 2), (16, 3)),
        lambda n: (torch.randint(0, 255, (n, 36, 40, 2), dtype=torch.uint8),),
    ),
    "cnn-first": Case(
        NatureCnn("q", (2, 36, 40), (16, 3)),
        lambda n: (torch.randint(0, 255, (n, 2, 36, 40), dtype=torch.uint8),),
    ),
    "noisy": Case(
        NOISY, lambda n: (*make_vector_inputs(5)(n), torch.linspace(-2, 2, NOISY.noise_size))
    ),
    "noisy-mean": Case(NOISY, make_vector_inputs(5)),
    "dueling": Case(DuelingHead("q", 5, actions=3, hidden=(8,)), make_vector_inputs(5)),
    "dueling-atoms": Case(
        DUELING, lambda n: (*make_vector_inputs(5)(n), torch.linspace(-2, 2, DUELING.noise_size))
    ),
    "quantile": Case(
        COSINES, lambda n: (*make_vector_inputs(6)(n), torch.linspace(0, 1, n * 4).view(n, 4))
    ),
    "lstm": Case(
        LSTM,
        lambda n: (*make_vector_inputs(3)(n), torch.ones(n, 8)),
        lambda *args: torch.cat(LSTM(*args), 1),
    ),
    "gru": Case(
        GRU,
        lambda n: (*make_vector_inputs(3)(n), torch.ones(n, 4)),
        lambda *args: torch.cat(GRU(*args), 1),
    ),
    "unroll": Case(
        LSTM,
        lambda n: (torch.ones(5, n, 3), torch.ones(n, 8), torch.eye(5, n).bool()),
        lambda *args: LSTM.unroll(*args)[0],
    ),
}


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


def make_parameters(case: Case, seed: int = 0) -> dict[str, Tensor]:
    parameters: dict[str, Tensor] = case.network.draw_uniform(torch.Generator().manual_seed(seed))
    return parameters


def test_parameters_have_the_shapes_of_the_network_and_depend_on_the_seed_alone(case) -> None:
    parameters, again, other = (
        make_parameters(case),
        make_parameters(case),
        make_parameters(case, 1),
    )
    assert {
        name: tuple(tensor.shape) for name, tensor in parameters.items()
    } == case.network.shapes()
    assert list(parameters) == list(case.network.shapes())
    assert all(torch.equal(parameters[name], again[name]) for name in parameters)
    assert not all(torch.equal(parameters[name], other[name]) for name in parameters)
    assert all(tensor.dtype == torch.float32 for tensor in parameters.values())


def test_every_parameter_has_a_gradient_through_one_flat_vector(case) -> None:
    layout, inputs = Layout(case.network.shapes()), case.inputs(4)
    vector = layout.join(make_parameters(case))
    gradient = torch.func.grad(lambda flat: case(layout.split(flat), *inputs).square().sum())(
        vector
    )
    used = {name for name, slope in layout.split(gradient).items() if slope.any()}
    unused = (
        {name for name in layout.shapes if name.endswith("_sigma")} if len(inputs) == 1 else set()
    )
    assert used == layout.shapes.keys() - unused


def test_stacked_parameters_under_vmap_give_what_each_set_gives(case) -> None:
    sets = [make_parameters(case, seed) for seed in range(3)]
    stacked = {name: torch.stack([one[name] for one in sets]) for name in sets[0]}
    inputs = [
        tuple(tensor + index if tensor.is_floating_point() else tensor for tensor in case.inputs(4))
        for index in range(3)
    ]
    together = torch.func.vmap(case)(
        stacked, *(torch.stack(column) for column in zip(*inputs, strict=True))
    )
    for index, parameters in enumerate(sets):
        torch.testing.assert_close(
            together[index], case(parameters, *inputs[index]), rtol=1e-4, atol=1e-5
        )


def test_a_gradient_may_be_stacked_too(case) -> None:
    layout, inputs = Layout(case.network.shapes()), case.inputs(2)
    vectors = torch.stack([layout.join(make_parameters(case, seed)) for seed in range(3)])
    slope = torch.func.grad(lambda flat: case(layout.split(flat), *inputs).square().mean())
    for together, vector in zip(
        torch.func.vmap(slope, randomness="error")(vectors), vectors, strict=True
    ):
        torch.testing.assert_close(together, slope(vector), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "cnn-first", "noisy-mean", "dueling", "lstm"])
def test_a_network_can_be_exported_with_any_number_of_samples(name) -> None:
    case = CASES[name]
    state = torch.ones(1, 8)

    def act(parameters, observation: Tensor) -> Tensor:
        more = (state.expand(observation.shape[0], 8),) if name == "lstm" else ()
        return case(parameters, observation, *more)

    module = ActingModule(make_parameters(case), act)
    program = torch.export.export(
        module, case.inputs(2)[:1], dynamic_shapes=({0: torch.export.Dim("N")},)
    )
    (seven, *_) = case.inputs(7)
    torch.testing.assert_close(program.module()(seven), module(seven))


def convert_to_arrays(parameters):
    return {name: tensor.numpy() for name, tensor in parameters.items()}


@pytest.mark.parametrize(
    "name", ["mlp", "features", "noisy", "noisy-mean", "dueling", "dueling-atoms"]
)
def test_the_function_in_numpy_is_the_same(name) -> None:
    case = CASES[name]
    sets = [make_parameters(case, seed) for seed in range(3)]
    for count in (1, 6):
        inputs = case.inputs(count)
        arrays = [tensor.numpy() for tensor in inputs]
        kept = [array.copy() for array in arrays]
        singles = [
            case.network.forward_numpy(convert_to_arrays(parameters), *arrays)
            for parameters in sets
        ]
        for parameters, single in zip(sets, singles, strict=True):
            assert single.dtype == np.float32
            np.testing.assert_allclose(
                single, case(parameters, *inputs).numpy(), rtol=1e-5, atol=1e-5
            )
        stacked = {key: np.stack([one[key].numpy() for one in sets]) for key in sets[0]}
        together = case.network.forward_numpy(stacked, np.stack([arrays[0]] * 3), *arrays[1:])
        np.testing.assert_allclose(together, np.stack(singles), rtol=1e-5, atol=1e-5)
        assert all(np.array_equal(array, copy) for array, copy in zip(arrays, kept, strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cnn", "dueling-atoms"])
def test_a_stacked_gradient_compiles_whole(name) -> None:
    case = CASES[name]
    layout, inputs = Layout(case.network.shapes()), case.inputs(4)
    vectors = torch.stack([layout.join(make_parameters(case, seed)) for seed in range(3)])

    def compute_slope(flat: Tensor) -> Tensor:
        return torch.func.grad(lambda vector: case(layout.split(vector), *inputs).square().mean())(
            flat
        )

    stacked = torch.func.vmap(compute_slope)
    torch.testing.assert_close(
        torch.compile(stacked, fullgraph=True)(vectors), stacked(vectors), rtol=1e-3, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_encoding_of_a_composite_and_normalising_compile_whole() -> None:
    from gymnasium import spaces

    image, flags = spaces.Box(0, 255, (2, 2), np.uint8), spaces.MultiDiscrete([2, 3])
    composite, multi = (
        encoding_of(spaces.Dict({"image": image, "flags": flags})),
        encoding_of(flags),
    )

    def encode_and_normalise(flat: Tensor, numbers: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        return torch.cat((composite(normalise(flat, mean, scale)), multi(numbers)), 1)

    arguments = (
        torch.rand(3, 9),
        torch.tensor([[1, 2], [0, 0], [0, 1]]),
        torch.rand(9),
        torch.rand(9),
    )
    torch.testing.assert_close(
        torch.compile(encode_and_normalise, fullgraph=True)(*arguments),
        encode_and_normalise(*arguments),
    )
