"""Action distributions compared with those of torch."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence

from workers.core.errors import DefinitionError
from workers.rl.agents.common.policies import LOG_STD, make_policy

MULTI = spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 1], [0, -2]])
BITS = spaces.MultiBinary((2, 2))
TORQUE = spaces.Box(np.float32([-2, 0]), np.float32([2, 10]), dtype=np.float32)
BOX = spaces.Box(-2, 2, (3,), np.float32)
SPACES = {"discrete": spaces.Discrete(4, start=1), "multi": MULTI, "bits": BITS, "box": BOX}


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def make_references(space, parameters, outputs) -> list:
    """Returns the independent components of the distribution as torch distributions."""
    match space:
        case spaces.Discrete():
            return [Categorical(logits=outputs)]
        case spaces.MultiDiscrete():
            return [
                Categorical(logits=part)
                for part in outputs.split(space.nvec.reshape(-1).tolist(), 1)
            ]
        case spaces.MultiBinary():
            return [Independent(Bernoulli(logits=outputs), 1)]
    return [Independent(Normal(outputs, parameters[LOG_STD].exp().expand_as(outputs)), 1)]


def make_policy_with_outputs(space, seed: int = 0) -> tuple:
    policy, generator = make_policy(space), torch.Generator().manual_seed(seed)
    parameters = {
        name: torch.randn(shape, generator=generator) for name, shape in policy.extra_shapes.items()
    }
    return policy, parameters, torch.randn(7, policy.outputs, generator=generator)


def test_log_probability_and_entropy_equal_those_of_torch(space) -> None:
    policy, parameters, outputs = make_policy_with_outputs(space)
    noise = policy.noise(np.random.default_rng(0), (7,))
    raw = policy.sample_tensor(parameters, outputs, torch.from_numpy(noise))
    parts = make_references(space, parameters, outputs)
    columns = raw.unbind(1) if isinstance(space, spaces.MultiDiscrete) else [raw]
    expected = sum(part.log_prob(column) for part, column in zip(parts, columns, strict=True))
    torch.testing.assert_close(policy.log_probability(parameters, outputs, raw), expected)
    torch.testing.assert_close(
        policy.entropy(parameters, outputs), sum(part.entropy() for part in parts)
    )


def test_divergence_equals_that_of_torch_and_is_none_from_itself(space) -> None:
    policy, old_parameters, old = make_policy_with_outputs(space)
    _, new_parameters, new = make_policy_with_outputs(space, seed=1)
    pairs = zip(
        make_references(space, old_parameters, old),
        make_references(space, new_parameters, new),
        strict=True,
    )
    got = policy.kl((old_parameters, old), (new_parameters, new))
    torch.testing.assert_close(got, sum(kl_divergence(*pair) for pair in pairs))
    assert (got > 0).all()
    torch.testing.assert_close(
        policy.kl((new_parameters, new), (new_parameters, new)), torch.zeros(7), rtol=0, atol=1e-6
    )


def test_arrays_and_tensors_give_the_same_actions_of_the_space_and_back(space) -> None:
    policy, parameters, outputs = make_policy_with_outputs(space)
    arrays = {name: tensor.numpy() for name, tensor in parameters.items()}
    noise = policy.noise(np.random.default_rng(0), (7,))
    for array, tensor in ((noise, torch.from_numpy(noise)), (None, None)):
        raw = policy.sample(arrays, outputs.numpy(), array)
        assert raw.shape == (7, *policy.raw_shape)
        assert raw.dtype == policy.raw_dtype
        np.testing.assert_allclose(
            raw, policy.sample_tensor(parameters, outputs, tensor).numpy(), rtol=1e-5, atol=1e-6
        )
        actions = policy.to_space(raw)
        assert all(space.contains(action) for action in actions)
        np.testing.assert_allclose(
            policy.tensor_to_space(torch.from_numpy(raw)).numpy(), actions, rtol=1e-6
        )
        if not isinstance(space, spaces.Box):
            np.testing.assert_array_equal(policy.from_space(actions), raw)


def test_stacked_outputs_are_sampled_like_each_alone(space) -> None:
    policy = make_policy(space)
    rng = np.random.default_rng(0)
    outputs, noise = (
        rng.normal(size=(3, 5, policy.outputs)).astype(np.float32),
        policy.noise(rng, (3, 5)),
    )
    arrays = {
        name: rng.normal(size=(3, *shape)).astype(np.float32)
        for name, shape in policy.extra_shapes.items()
    }
    stacked = policy.sample(arrays, outputs, noise)
    for index in range(3):
        alone = policy.sample(
            {name: array[index] for name, array in arrays.items()}, outputs[index], noise[index]
        )
        np.testing.assert_array_equal(stacked[index], alone)


@pytest.mark.parametrize("space", [MULTI, BITS])
def test_samples_of_products_follow_the_probabilities(space) -> None:
    policy = make_policy(space)
    _, _, outputs = make_policy_with_outputs(space)
    raw = policy.sample({}, outputs.numpy()[:1], policy.noise(np.random.default_rng(0), (40_000,)))
    if isinstance(space, spaces.MultiBinary):
        np.testing.assert_allclose(raw.mean(0), outputs[0].sigmoid(), atol=0.01)
        return
    for column, part in zip(raw.T, make_references(space, {}, outputs[:1]), strict=True):
        np.testing.assert_allclose(np.bincount(column) / 40_000, part.probs[0], atol=0.01)


def test_spaces_without_a_policy_are_refused_by_the_name_of_the_agent() -> None:
    with pytest.raises(DefinitionError, match="a2c needs a Discrete, MultiDiscrete"):
        make_policy(spaces.Box(0, 3, (2,), np.int64), "a2c")


@pytest.mark.parametrize("space", [spaces.Discrete(4), TORQUE])
def test_log_probability_entropy_and_mode_equal_torch_distributions(space) -> None:
    policy = make_policy(space)
    outputs = torch.randn(7, policy.outputs)
    parameters = {name: torch.randn(shape) for name, shape in policy.extra_shapes.items()}
    if isinstance(space, spaces.Discrete):
        raw = torch.randint(4, (7,))
        reference = torch.distributions.Categorical(logits=outputs)
        log_probability, entropy = reference.log_prob(raw), reference.entropy()
        assert torch.equal(policy.sample_tensor(parameters, outputs, None), outputs.argmax(1))
    else:
        raw = torch.randn(7, 2)
        normal = torch.distributions.Normal(outputs, parameters[LOG_STD].exp())
        log_probability, entropy = normal.log_prob(raw).sum(1), normal.entropy().sum(1)
    torch.testing.assert_close(policy.log_probability(parameters, outputs, raw), log_probability)
    torch.testing.assert_close(policy.entropy(parameters, outputs), entropy)


def test_categorical_samples_follow_the_probabilities() -> None:
    policy = make_policy(spaces.Discrete(3, start=1))
    logits = np.log(np.float32([[0.2, 0.5, 0.3]]))
    actions = policy.to_space(
        policy.sample({}, logits, policy.noise(np.random.default_rng(0), (40_000,)))
    )
    assert np.bincount(actions, minlength=4)[1:] / 40_000 == pytest.approx(
        [0.2, 0.5, 0.3], abs=0.01
    )


def test_gaussian_actions_are_scaled_clipped_and_of_the_space() -> None:
    policy = make_policy(TORQUE)
    raw = np.float32([[-1, -1], [1, 1], [0, 0], [9, -9]])
    actions = policy.to_space(raw)
    np.testing.assert_allclose(actions, [[-2, 0], [2, 10], [0, 5], [2, 0]])
    assert all(TORQUE.contains(action) for action in actions)
    np.testing.assert_allclose(policy.from_space(actions[:3]), raw[:3])
    torch.testing.assert_close(
        policy.tensor_to_space(torch.from_numpy(raw)), torch.from_numpy(actions)
    )
    noise = policy.noise(np.random.default_rng(0), (40_000,))
    sample = policy.sample({LOG_STD: np.log(np.float32([1, 3]))}, np.float32([[1, -1]]), noise)
    assert sample.std(0) == pytest.approx([1.0, 3.0], rel=0.02)
    assert sample.mean(0) == pytest.approx([1.0, -1.0], abs=0.05)


def test_unbounded_boxes_are_not_scaled() -> None:
    space = spaces.Box(-np.inf, np.inf, (2, 2), np.float64)
    policy = make_policy(space)
    raw = np.float32([[1, 2, 3, -40]])
    actions = policy.to_space(raw)
    assert actions.dtype == np.float64
    np.testing.assert_allclose(actions, [[[1, 2], [3, -40]]])
    np.testing.assert_allclose(policy.from_space(actions), raw)
