import numpy as np
import pytest
import torch
from gymnasium import spaces

from workers.rl.networks.action_values import ActionValues, make_action_values, make_torso
from workers.rl.networks.cosine_embedding import CosineEmbedding
from workers.rl.networks.dueling import combine_streams
from workers.rl.networks.mlp import Mlp
from workers.rl.networks.nature_cnn import NatureCnn
from workers.rl.networks.recurrent import RecurrentLayer

BOX = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (2, 36, 36), np.uint8)
OPTIONS = [
    {"is_dueling": a, "is_noisy": b, "atoms": c}
    for a in (False, True)
    for b in (False, True)
    for c in (None, 5)
]


def make_parameters(network: ActionValues) -> dict[str, torch.Tensor]:
    return network.draw_uniform(torch.Generator().manual_seed(0))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_arrays_and_tensors_agree_and_so_do_stacked_networks(options) -> None:
    network = make_action_values(BOX, 4, hidden=(8, 6), **options)
    parameters, rng = make_parameters(network), np.random.default_rng(0)
    observation = rng.normal(size=(7, 3)).astype(np.float32)
    noise = (
        rng.normal(size=(7, network.noise_size)).astype(np.float32) if options["is_noisy"] else None
    )
    expected = network(
        parameters,
        torch.from_numpy(observation),
        None if noise is None else torch.from_numpy(noise),
    ).numpy()
    assert expected.shape == (7, 4) if options["atoms"] is None else (7, 4, 5)
    arrays = {name: tensor.numpy() for name, tensor in parameters.items()}
    np.testing.assert_allclose(
        network.forward_numpy(arrays, observation, noise), expected, rtol=1e-4, atol=1e-5
    )
    stacked = {name: np.stack((array, -array)) for name, array in arrays.items()}
    both = network.forward_numpy(
        stacked,
        np.stack((observation, observation)),
        None if noise is None else np.stack((noise, noise)),
    )
    np.testing.assert_allclose(both[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_images_pass_convolutions_and_then_all_hidden_layers(options) -> None:
    network = make_action_values(IMAGE, 4, hidden=(8, 6), **options)
    image = torch.randint(0, 256, (2, 2, 36, 36), dtype=torch.uint8)
    assert network(make_parameters(network), image).shape == (
        (2, 4) if options["atoms"] is None else (2, 4, 5)
    )
    assert network.forward_numpy({}, image.numpy()) is None
    assert isinstance(network.torso, NatureCnn)
    assert {
        shape[0]
        for name, shape in network.shapes().items()
        if name.endswith("weight") and "conv" not in name
    } >= {8, 6}


def test_plain_networks_are_one_mlp() -> None:
    network = make_action_values(BOX, 4, hidden=(8, 6))
    assert network.shapes() == Mlp("q", (3, 8, 6, 4)).shapes()
    assert network.noise_size == 0


def test_the_last_hidden_layer_is_the_heads_where_that_has_streams_or_noise() -> None:
    streams = make_action_values(BOX, 4, hidden=(8, 6), is_dueling=True).shapes()
    assert streams["torso.0.weight"] == (8, 3)
    assert streams["q.value.0.weight"] == streams["q.advantage.0.weight"] == (6, 8)
    noisy = make_action_values(BOX, 4, hidden=(8, 6), is_noisy=True)
    assert {name for name in noisy.shapes() if name.endswith("weight_sigma")} == {
        "q.0.weight_sigma",
        "q.1.weight_sigma",
    }
    assert noisy.noise_size == 8 + 6 + 6 + 4


def test_dueling_streams_are_joined() -> None:
    network = make_action_values(BOX, 4, hidden=(), is_dueling=True)
    parameters, observation = make_parameters(network), torch.randn(5, 3)
    value, advantage = (
        torch.nn.functional.linear(
            observation, parameters[f"q.{name}.0.weight"], parameters[f"q.{name}.0.bias"]
        )
        for name in ("value", "advantage")
    )
    torch.testing.assert_close(network(parameters, observation), combine_streams(value, advantage))


def test_a_torso_without_layers_returns_the_encoded_observation() -> None:
    encoding, torso = make_torso(spaces.Discrete(3), (), "relu")
    assert torso.outputs == 3
    assert torso({}, encoding(torch.tensor([2, 0]))).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_fractions_are_embedded_by_arrays_as_by_tensors() -> None:
    embedding = CosineEmbedding("tau", features=6, cosines=8)
    parameters, fractions = (
        embedding.draw_uniform(torch.Generator().manual_seed(0)),
        torch.rand(5, 4),
    )
    arrays, expected = (
        {name: tensor.numpy() for name, tensor in parameters.items()},
        embedding.embed(parameters, fractions).numpy(),
    )
    np.testing.assert_allclose(
        embedding.embed_numpy(arrays, fractions.numpy()), expected, rtol=1e-4, atol=1e-5
    )
    stacked = {name: np.stack((array, -array)) for name, array in arrays.items()}
    both = embedding.embed_numpy(stacked, np.stack((fractions.numpy(),) * 2))
    assert both.shape == (2, 5, 4, 6)
    np.testing.assert_allclose(both[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_an_initial_cell_keeps_information_over_twelve_steps(kind) -> None:
    """Regression: with an initial bias of 0 for the gate, 0.3 % of the state was left."""
    cell, traces = RecurrentLayer("m", 8, 32, kind), []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        parameters, inputs = cell.draw_uniform(generator), torch.zeros(13, 4, 8)
        inputs[0] = torch.rand(4, 8, generator=generator)
        outputs, _ = cell.unroll(
            parameters,
            inputs,
            torch.zeros(4, cell.state_size),
            torch.zeros(13, 4, dtype=torch.bool),
        )
        spread = outputs.std(1).mean(1)
        traces.append(float(spread[12] / spread[0]))
    assert min(traces) > 0.02, traces


@pytest.mark.parametrize(("kind", "gate"), [("lstm", slice(4, 8)), ("gru", slice(4, 8))])
def test_the_gate_that_keeps_the_state_has_an_initial_bias_of_one(kind, gate) -> None:
    """It is the forget gate of an LSTM and the update gate of a GRU.

    In torch's order these are the rows H to 2 H.
    """
    cell, module = (
        RecurrentLayer("m", 3, 4, kind),
        {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}[kind](3, 4),
    )
    bias = cell.draw_uniform(torch.Generator().manual_seed(0))["m.inputs.bias"]
    assert (bias[gate] > 0.5).all()
    assert (bias[:4].abs() <= 0.5).all()
    assert (bias[8:].abs() <= 0.5).all()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        # The open gate keeps the state.
        module.bias_ih[gate] = 50.0
        state = torch.rand(2, 4)
        kept = (
            module(torch.rand(2, 3), (state, state))[1]
            if kind == "lstm"
            else module(torch.rand(2, 3), state)
        )
    torch.testing.assert_close(kept, state)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_of_all_steps_begin_with_the_outputs(kind) -> None:
    cell = RecurrentLayer("m", 3, 4, kind)
    parameters, begins = (
        cell.draw_uniform(torch.Generator().manual_seed(0)),
        torch.rand(6, 5) < 0.3,
    )
    inputs, state = torch.randn(6, 5, 3), torch.randn(5, cell.state_size)
    states = cell.states(parameters, inputs, state, begins)
    outputs, last = cell.unroll(parameters, inputs, state, begins)
    assert torch.equal(states[..., :4], outputs)
    assert torch.equal(states[-1], last)
    for t in range(6):
        _, state = cell(parameters, inputs[t], state * ~begins[t].unsqueeze(1))
        torch.testing.assert_close(states[t], state)
