from collections import OrderedDict

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space

from workers.core.errors import DefinitionError
from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.observation_encoding import encoding_of, with_byte_bounds

NESTED = spaces.Dict(
    {
        "z": spaces.Tuple((spaces.Discrete(3, start=1), spaces.Box(-1, 1, (2, 2), np.float32))),
        "a": spaces.Dict(
            {"image": spaces.Box(0, 255, (2, 2, 1), np.uint8), "bits": spaces.MultiBinary(3)}
        ),
        "m": spaces.MultiDiscrete([2, 3]),
    }
)


@pytest.mark.parametrize(
    ("space", "observation", "expected"),
    [
        (spaces.Box(-1, 1, (2,), np.float32), np.float32([[1, 2]]), [[1, 2]]),
        (spaces.Box(-1, 1, (2, 2), np.float64), np.float32([[[1, 2], [3, 4]]]), [[1, 2, 3, 4]]),
        (spaces.Box(0, 255, (1, 2), np.uint8), np.uint8([[[0, 255]]]), [[0, 1]]),
        (spaces.Box(0, 1, (2,), np.uint8), np.uint8([[0, 1]]), [[0, 1]]),
        (spaces.Box(0, 0, (1,), np.uint8), np.uint8([[0]]), [[0]]),
        (
            spaces.Box(np.zeros((2, 2)), np.array([[1, 1], [5, 255]]), dtype=np.uint8),
            np.uint8([[[1, 0], [4, 51]]]),
            [[1, 0, 0.8, 0.2]],
        ),
        (
            spaces.Tuple((spaces.Box(0, 4, (2,), np.uint8), spaces.MultiBinary(1))),
            np.float32([[4, 1, 1]]),
            [[1, 0.25, 1]],
        ),
        (
            spaces.Dict({"a": spaces.Box(0, 9, (1, 1), np.int16)}),
            np.float32([[9]]),
            [[9]],
        ),
        (spaces.Discrete(3), np.int64([2, 0]), [[0, 0, 1], [1, 0, 0]]),
        (spaces.Discrete(3, start=-1), np.int64([-1]), [[1, 0, 0]]),
        (spaces.MultiBinary(3), np.int8([[1, 0, 1]]), [[1, 0, 1]]),
        (spaces.Box(-1, 1, (), np.float32), np.float32([1, 2]), [[1], [2]]),
        (
            spaces.MultiDiscrete([2, 3]),
            np.int64([[1, 0], [0, 2]]),
            [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]],
        ),
        (spaces.MultiDiscrete([2, 2], start=[5, -1]), np.int64([[5, 0]]), [[1, 0, 0, 1]]),
        (spaces.MultiDiscrete([[2], [2]]), np.int64([[[1], [0]]]), [[0, 1, 1, 0]]),
        (
            spaces.Tuple((spaces.Discrete(2), spaces.Box(-9, 9, (1,)))),
            np.float32([[0, 1, 3]]),
            [[0, 1, 3]],
        ),
        (
            spaces.Dict({"i": spaces.Box(0, 255, (2,), np.uint8), "n": spaces.Discrete(2)}),
            np.float32([[255, 51, 1, 0]]),
            [[1, 0.2, 1, 0]],
        ),
    ],
)
def test_an_observation_is_encoded_as_a_vector(space, observation, expected) -> None:
    encoding = encoding_of(space)
    encoded = encoding(torch.from_numpy(observation))
    assert encoded.dtype == torch.float32
    assert encoded.shape[1] == encoding.size
    torch.testing.assert_close(encoded, torch.tensor(expected, dtype=torch.float32))
    arrays = encoding.forward_numpy(observation)
    assert arrays.dtype == np.float32
    np.testing.assert_allclose(arrays, expected, rtol=1e-6)
    np.testing.assert_allclose(
        encoding.forward_numpy(np.stack([observation] * 2)), [expected] * 2, rtol=1e-6
    )


@pytest.mark.parametrize(
    "space",
    [NESTED, spaces.MultiDiscrete([2, 3], start=[1, 0]), spaces.Tuple((spaces.Discrete(4),))],
)
def test_sizes_and_order_are_those_of_gymnasium(space) -> None:
    space.seed(0)
    encoding, sample = encoding_of(space), space.sample()
    assert encoding.size == flatten_space(space).shape[0]
    flat = flatten(space, sample)
    if isinstance(space, spaces.MultiDiscrete):
        np.testing.assert_array_equal(encoding.forward_numpy(sample[None])[0], flat)
        return
    assert encoding.shape == flat.shape
    assert encoding.dtype == np.float32
    bytes_first = np.arange(len(flat))
    is_byte = (
        np.isin(bytes_first, np.arange(3, 7)) if space is NESTED else np.zeros(len(flat), np.bool_)
    )
    expected = np.where(is_byte, flat / 255, flat)
    np.testing.assert_allclose(
        encoding.forward_numpy(flat[None].astype(np.float32))[0], expected, rtol=1e-6
    )
    hash(encoding)


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.Discrete(3), NESTED])
def test_encoding_under_vmap_equals_encoding_of_each_sample(space) -> None:
    encoding = encoding_of(space)
    observation = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (3, 4, *encoding.shape)))
    together = torch.func.vmap(encoding)(observation)
    for index in range(3):
        assert torch.equal(together[index], encoding(observation[index]))


def test_all_bytes_are_divided_by_255_in_a_space_with_the_bounds_of_bytes() -> None:
    space = spaces.Dict(
        OrderedDict(
            z=spaces.Tuple((spaces.Box(0, 1, (2,), np.uint8), spaces.Discrete(2))),
            a=spaces.Box(-1, 1, (1,), np.float32),
        )
    )
    widened = with_byte_bounds(space)
    assert list(widened) == ["z", "a"]
    observation = np.float32([[1, 0, 1, 0, 0.5]])
    np.testing.assert_allclose(
        encoding_of(widened).forward_numpy(observation), [[1 / 255, 0, 1, 0, 0.5]]
    )
    np.testing.assert_allclose(encoding_of(space).forward_numpy(observation), observation)


def test_encoding_stores_doubles_as_floats() -> None:
    assert encoding_of(spaces.Box(-1, 1, (2,), np.float64)).dtype == np.float32


def test_an_observation_of_nothing_is_refused() -> None:
    with pytest.raises(DefinitionError, match="hold no numbers"):
        encoding_of(spaces.Tuple(()))


@pytest.mark.parametrize(
    "space",
    [spaces.Text(3), spaces.Dict({"a": spaces.Text(3)}), spaces.Sequence(spaces.Discrete(2))],
)
def test_spaces_that_cannot_be_read_are_refused(space) -> None:
    with pytest.raises(DefinitionError, match="wrap the environment"):
        encoding_of(space)


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), NESTED])
def test_an_encoding_can_be_exported_with_any_number_of_samples(space) -> None:
    encoding = encoding_of(space)
    module = ActingModule(
        {"scale": torch.ones(())},
        lambda parameters, observation: encoding(observation) * parameters["scale"],
    )
    observation = torch.ones(
        (5, *encoding.shape), dtype=torch.from_numpy(np.zeros(0, encoding.dtype)).dtype
    )
    program = torch.export.export(
        module, (observation[:2],), dynamic_shapes=({0: torch.export.Dim("N")},)
    )
    torch.testing.assert_close(program.module()(observation), encoding(observation))
