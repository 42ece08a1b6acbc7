"""The layers of networks, compared with loops and with torch's modules."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from workers.core.errors import DefinitionError
from workers.rl.networks.cosine_embedding import CosineEmbedding
from workers.rl.networks.dueling import DuelingHead, combine_streams
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.nature_cnn import NatureCnn, image_features, is_image
from workers.rl.networks.noisy import NoisyMlp
from workers.rl.networks.observation_encoding import encoding_of
from workers.rl.networks.recurrent import RecurrentLayer


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_convolutional_network_is_that_of_the_paper() -> None:
    network = NatureCnn("q", (4, 84, 84), (512, 6))
    parameters = network.draw_uniform(make_generator())
    module = nn.Sequential(
        *(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1),
            nn.ReLU(),
            nn.Flatten(),
        ),
        *(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)),
    )
    module.load_state_dict(dict(zip(module.state_dict(), parameters.values(), strict=True)))
    images = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    torch.testing.assert_close(network(parameters, images), module(images / 255))
    torch.testing.assert_close(network(parameters, images / 255), module(images / 255))
    assert network.outputs == 6
    assert parameters["q.conv.0.weight"].abs().max() <= 1 / 16


def test_the_position_of_the_channels_and_the_encoding_make_no_difference() -> None:
    first, last = NatureCnn("q", (3, 40, 36), (5,)), NatureCnn("q", (40, 36, 3), (5,))
    parameters = first.draw_uniform(make_generator())
    images = torch.randint(0, 256, (2, 3, 40, 36), dtype=torch.uint8)
    expected = first(parameters, images)
    torch.testing.assert_close(last(parameters, images.permute(0, 2, 3, 1)), expected)
    encoding = encoding_of(spaces.Box(0, 255, (3, 40, 36), np.uint8))
    torch.testing.assert_close(first(parameters, encoding(images)), expected)


@pytest.mark.parametrize(
    ("shape", "high"),
    [
        ((3, 36, 40), [1, 255, 7]),
        ((36, 40, 3), [1, 255, 7]),
        ((36, 40), [4]),
        ((2, 36, 36), [3, 3]),
        ((1, 36, 36), [0]),
    ],
)
def test_bytes_of_images_are_divided_by_the_bounds_of_their_channels(
    shape: tuple[int, ...], high: list[int]
) -> None:
    by_channel = np.reshape(high, (1, 1, -1) if shape[-1] == 3 else (-1, 1, 1))
    bounds = np.broadcast_to(by_channel, (1, *shape) if len(shape) == 2 else shape).reshape(shape)
    space = spaces.Box(np.zeros(shape, np.uint8), bounds.astype(np.uint8), dtype=np.uint8)
    network = image_features("q", space, (5,))
    parameters = network.draw_uniform(make_generator())
    space.seed(0)
    images = np.stack([space.sample() for _ in range(2)])
    expected = network(parameters, torch.from_numpy((images / np.maximum(bounds, 1)).astype("f4")))
    torch.testing.assert_close(network(parameters, torch.from_numpy(images)), expected)


def test_an_image_without_channels_has_one_and_features_are_rectified() -> None:
    flat, deep = (
        NatureCnn("q", (36, 36), (), has_last_activation=True),
        NatureCnn("q", (1, 36, 36), (9,), has_last_activation=True),
    )
    parameters = deep.draw_uniform(make_generator())
    images = torch.randint(0, 256, (2, 36, 36), dtype=torch.uint8)
    assert flat(parameters, images).shape == (2, 64)
    assert deep(parameters, images.unsqueeze(1)).min() >= 0


def test_images_too_small_or_of_no_such_shape_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"35x84 are too small.*at least 36x36"):
        NatureCnn("q", (35, 84, 3))
    with pytest.raises(DefinitionError, match="not \\(4, 84, 84, 3\\)"):
        NatureCnn("q", (4, 84, 84, 3))


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), True),
        (spaces.Box(0, 255, (84, 84, 1), np.uint8), True),
        (spaces.Box(0, 255, (36, 36), np.uint8), True),
        (spaces.Box(0, 255, (3, 35, 84), np.uint8), False),
        (spaces.Box(0, 1, (3, 84, 84), np.float32), False),
        (spaces.Box(0, 255, (4, 84, 84, 3), np.uint8), False),
        (spaces.Discrete(3), False),
    ],
)
def test_images_are_recognised_by_their_space(space, expected) -> None:
    assert is_image(space) is expected
    if expected:
        NatureCnn("q", space.shape)


def test_orthogonal_filters_have_orthogonal_rows() -> None:
    parameters = NatureCnn("q", (1, 36, 36), (8, 2)).draw_orthogonal(make_generator(), gain=0.1)
    filters, last = parameters["q.conv.0.weight"].flatten(1), parameters["q.1.weight"]
    torch.testing.assert_close(filters @ filters.T, 2 * torch.eye(32), atol=1e-5, rtol=0)
    torch.testing.assert_close(last @ last.T, 0.01 * torch.eye(2), atol=1e-6, rtol=0)


def test_dueling_values_equal_a_calculation_by_hand() -> None:
    joined = combine_streams(torch.tensor([[10.0]]), torch.tensor([[1.0, 2.0, 6.0]]))
    torch.testing.assert_close(joined, torch.tensor([[8.0, 9.0, 13.0]]))


def test_the_mean_of_dueling_values_is_the_value_stream() -> None:
    head, features = DuelingHead("q", 5, actions=3, hidden=(8,), atoms=4), torch.randn(6, 5)
    parameters = head.draw_uniform(make_generator())
    values = head(parameters, features)
    assert values.shape == (6, 3, 4)
    assert head.outputs == 12
    assert head.noise_size == 0
    value = Mlp("q.value", (5, 8, 4))(parameters, features)
    advantage = Mlp("q.advantage", (5, 8, 12))(parameters, features).view(6, 3, 4)
    torch.testing.assert_close(values.mean(1), value)
    torch.testing.assert_close(values[:, 1] - values[:, 0], advantage[:, 1] - advantage[:, 0])


def test_a_noisy_layer_equals_a_calculation_by_hand() -> None:
    """Computes equations 9 to 11 of the paper with loops."""
    network = NoisyMlp("n", (2, 3))
    parameters, noise = (
        network.draw_uniform(make_generator()),
        torch.tensor([4.0, -9.0, 1.0, -0.25, 0.0]),
    )
    scaled = [2.0, -3.0, 1.0, -0.5, 0.0]
    inputs = [0.5, 2.0]
    expected = []
    for row in range(3):
        total = float(
            parameters["n.0.bias"][row] + parameters["n.0.bias_sigma"][row] * scaled[2 + row]
        )
        for column in range(2):
            epsilon = scaled[2 + row] * scaled[column]
            weight = (
                parameters["n.0.weight"][row, column]
                + parameters["n.0.weight_sigma"][row, column] * epsilon
            )
            total += float(weight) * inputs[column]
        expected.append(total)
    assert network.noise_size == 5
    torch.testing.assert_close(
        network(parameters, torch.tensor([inputs]), noise), torch.tensor([expected])
    )


def test_noise_per_sample_is_a_network_of_its_own_for_each() -> None:
    network, inputs = NoisyMlp("n", (4, 6, 2), "tanh"), torch.randn(5, 4)
    parameters, noise = (
        network.draw_uniform(make_generator()),
        torch.randn(5, network.noise_size),
    )
    together = network(parameters, inputs, noise)
    for row in range(5):
        torch.testing.assert_close(
            together[row], network(parameters, inputs[row : row + 1], noise[row])[0]
        )


def test_noisy_layers_begin_as_the_paper_says_and_without_noise_are_the_mean() -> None:
    network = NoisyMlp("n", (16, 50, 2))
    parameters = network.draw_uniform(make_generator())
    assert torch.equal(parameters["n.0.weight_sigma"], torch.full((50, 16), 0.5 / 4))
    assert torch.equal(parameters["n.0.bias_sigma"], torch.full((50,), 0.5 / 4))
    assert 0.24 < parameters["n.0.weight"].abs().max() <= 0.25
    inputs = torch.randn(3, 16)
    torch.testing.assert_close(
        network(parameters, inputs), Mlp("n", (16, 50, 2))(parameters, inputs)
    )
    torch.testing.assert_close(
        network(parameters, inputs), network(parameters, inputs, torch.zeros(network.noise_size))
    )


def test_the_embedding_of_quantiles_equals_a_calculation_by_hand() -> None:
    """Computes equation 4 of the paper with loops."""
    network = CosineEmbedding("tau", features=3, cosines=5)
    parameters = network.draw_uniform(make_generator())
    features, fractions = torch.randn(2, 3), torch.rand(2, 4)
    joined = network(parameters, features, fractions)
    weight, bias = parameters["tau.0.weight"], parameters["tau.0.bias"]
    for n in range(2):
        for k in range(4):
            for j in range(3):
                total = sum(
                    math.cos(math.pi * i * float(fractions[n, k])) * float(weight[j, i])
                    for i in range(5)
                ) + float(bias[j])
                assert float(joined[n, k, j]) == pytest.approx(
                    float(features[n, j]) * max(total, 0.0), abs=1e-5
                )


@pytest.mark.parametrize(
    ("kind", "module"), [("lstm", nn.LSTMCell(3, 4)), ("gru", nn.GRUCell(3, 4))]
)
def test_a_recurrent_step_is_that_of_torch(kind, module) -> None:
    cell = RecurrentLayer("m", 3, 4, kind)
    parameters = cell.draw_uniform(make_generator())
    # These are the biases of the gate that keeps the state.
    parameters["m.inputs.bias"][4:8] -= 1.0
    assert max(float(tensor.abs().max()) for tensor in parameters.values()) <= 0.5
    names = {
        "weight_ih": "inputs.weight",
        "weight_hh": "state.weight",
        "bias_ih": "inputs.bias",
        "bias_hh": "state.bias",
    }
    module.load_state_dict({theirs: parameters[f"m.{ours}"] for theirs, ours in names.items()})
    inputs, state = torch.randn(5, 3), torch.randn(5, cell.state_size)
    output, after = cell(parameters, inputs, state)
    expected = module(inputs, tuple(state.chunk(2, 1))) if kind == "lstm" else module(inputs, state)
    torch.testing.assert_close(after, torch.cat(expected, 1) if kind == "lstm" else expected)
    torch.testing.assert_close(output, after[:, :4])


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_recurrent_step_in_numpy_is_the_same(kind) -> None:
    cell = RecurrentLayer("m", 3, 4, kind)
    sets = [cell.draw_uniform(make_generator(seed)) for seed in range(3)]
    stacked = {name: np.stack([one[name].numpy() for one in sets]) for name in sets[0]}
    inputs, state = 30 * torch.randn(3, 5, 3), torch.randn(3, 5, cell.state_size)
    kept = state.clone()
    together = cell.forward_numpy(stacked, inputs.numpy(), state.numpy())
    for index, parameters in enumerate(sets):
        arrays = {name: tensor.numpy() for name, tensor in parameters.items()}
        single = cell.forward_numpy(arrays, inputs[index].numpy(), state[index].numpy())
        for array, both, tensor in zip(
            single, together, cell(parameters, inputs[index], state[index]), strict=True
        ):
            assert array.dtype == np.float32
            np.testing.assert_allclose(array, tensor.numpy(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(both[index], array, rtol=1e-4, atol=1e-5)
    assert torch.equal(state, kept)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_an_unroll_begins_again_with_an_episode(kind) -> None:
    cell = RecurrentLayer("m", 3, 4, kind)
    parameters, inputs, state = (
        cell.draw_uniform(make_generator()),
        torch.randn(6, 2, 3),
        torch.randn(2, cell.state_size),
    )
    begins = torch.zeros(6, 2, dtype=torch.bool)
    begins[0, 1] = begins[3, 0] = True
    outputs, after = cell.unroll(parameters, inputs, state, begins)
    assert outputs.shape == (6, 2, 4)
    for t in range(6):
        state = torch.where(begins[t].unsqueeze(1), cell.initial_state(2), state)
        output, state = cell(parameters, inputs[t], state)
        torch.testing.assert_close(outputs[t], output)
    torch.testing.assert_close(after, state)
    alone, _ = cell.unroll(parameters, inputs[3:, :1], cell.initial_state(1), begins[3:, :1])
    torch.testing.assert_close(outputs[3:, :1], alone)


def test_recurrent_weights_may_begin_orthogonal() -> None:
    parameters = RecurrentLayer("m", 3, 4).draw_orthogonal(make_generator())
    weight = parameters["m.state.weight"]
    torch.testing.assert_close(weight.T @ weight, torch.eye(4), atol=1e-5, rtol=0)
    assert not parameters["m.inputs.bias"].any()
