import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.rl.networks.acting_module import ActingModule
from workers.rl.networks.running_normaliser import (
    ObservationNormaliser,
    RewardNormaliser,
    RunningMoments,
    normalise,
)


@given(st.lists(st.integers(0, 7), max_size=8), st.floats(-1e4, 1e4), st.integers(0, 99))
def test_moments_in_pieces_are_those_of_the_whole(counts, offset, seed) -> None:
    rng = np.random.default_rng(seed)
    pieces = [offset + rng.normal(size=(count, 2, 3)) for count in counts]
    moments, left, right = RunningMoments((2, 3)), RunningMoments((2, 3)), RunningMoments((2, 3))
    for index, piece in enumerate(pieces):
        moments.update(piece)
        (left if index % 2 else right).update(piece)
    left.merge(right)
    whole = np.concatenate([np.zeros((0, 2, 3)), *pieces])
    for one in (moments, left):
        assert one.count == len(whole)
        if len(whole) > 1:
            np.testing.assert_allclose(one.mean, whole.mean(0), rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(one.variance, whole.var(0), rtol=1e-6, atol=1e-9)


def test_moments_far_from_zero_keep_their_digits() -> None:
    moments, values = RunningMoments(()), 1e9 + np.tile([1.0, 2.0, 3.0], 1000)
    for piece in np.split(values, 300):
        moments.update(piece)
    assert float(moments.variance) == pytest.approx(2 / 3, rel=1e-6)


def test_observations_come_out_with_mean_0_and_deviation_1_and_clipped() -> None:
    rng = np.random.default_rng(0)
    batch = (rng.normal(size=(500, 3)) * [1, 5, 0] + [0, 100, 7]).astype(np.float32)
    normaliser = ObservationNormaliser((3,))
    np.testing.assert_array_equal(normaliser(batch[:2]), np.clip(batch[:2], -10, 10))
    for piece in np.split(batch, 5):
        normaliser.update(piece)
    result = normaliser(batch)
    assert result.dtype == np.float32
    expected = (batch - batch.mean(0, dtype=np.float64)) / np.sqrt(
        batch.var(0, dtype=np.float64) + 1e-8
    )
    np.testing.assert_allclose(result, np.clip(expected, -10, 10), atol=1e-4)
    assert normaliser(np.float32([[1e9, -1e9, 7]])).tolist() == [[10, -10, 0]]
    stacked = batch.reshape(5, 100, 3)
    np.testing.assert_array_equal(normaliser(stacked).reshape(-1, 3), result)


def test_bytes_may_come_in_and_the_input_stays_as_it_is() -> None:
    normaliser, images = (
        ObservationNormaliser((2,), clip=5.0),
        np.uint8([[0, 255], [255, 0], [10, 20]]),
    )
    kept = images.copy()
    normaliser.update(images)
    assert np.abs(normaliser(images)).max() < 5
    assert np.array_equal(images, kept)
    floats = np.float32([[1, 2]])
    normaliser(floats)
    assert floats.tolist() == [[1, 2]]


def test_the_network_side_computes_the_same_and_can_be_exported() -> None:
    normaliser, batch = (
        ObservationNormaliser((3,)),
        np.random.default_rng(1).normal(3, 9, (40, 3)).astype(np.float32),
    )
    normaliser.update(batch)
    mean, scale = normaliser.tensors()
    np.testing.assert_allclose(
        normalise(torch.from_numpy(batch * 50), mean, scale).numpy(),
        normaliser(batch * 50),
        rtol=1e-6,
    )
    module = ActingModule(
        {"n.mean": mean, "n.scale": scale}, lambda p, x: normalise(x, p["n.mean"], p["n.scale"])
    )
    normaliser.update(batch + 5)
    program = torch.export.export(
        module, (torch.zeros(2, 3),), dynamic_shapes=({0: torch.export.Dim("N")},)
    )
    expected = normalise(torch.from_numpy(batch), mean, scale)
    torch.testing.assert_close(program.module()(torch.from_numpy(batch)), expected)


def test_a_frozen_normaliser_stands_still_however_it_is_left() -> None:
    observations, rewards = ObservationNormaliser((2,)), RewardNormaliser(2, 0.9)
    observations.update(np.eye(2))
    before = observations.state_dict(), rewards.state_dict()

    def raise_while_frozen() -> None:
        with observations.freeze(), rewards.freeze():
            observations.update(np.ones((4, 2)))
            rewards.update(np.ones((4, 2)), np.zeros((4, 2), np.bool_))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        raise_while_frozen()
    for one, state in zip((observations, rewards), before, strict=True):
        assert all(np.array_equal(state[name], value) for name, value in one.state_dict().items())
    observations.update(np.ones((4, 2)))
    assert observations.moments.count == 6


def compute_returns_naively(reward, ended, active, gamma) -> list[float]:
    seen, running = [], [0.0] * reward.shape[1]
    for t in range(len(reward)):
        for b in range(reward.shape[1]):
            if not active[t, b]:
                continue
            running[b] = gamma * running[b] + reward[t, b]
            seen.append(running[b])
            if ended[t, b]:
                running[b] = 0.0
    return seen


@pytest.mark.parametrize("waiting", [False, True])
def test_rewards_are_scaled_by_the_deviation_of_the_running_return(waiting) -> None:
    rng = np.random.default_rng(0)
    reward, ended = rng.normal(1, 3, (60, 3)), rng.random((60, 3)) < 0.1
    active = rng.random((60, 3)) < 0.8 if waiting else np.ones((60, 3), np.bool_)
    together, in_pieces = RewardNormaliser(3, 0.9), RewardNormaliser(3, 0.9)
    together.update(reward, ended, active if waiting else None)
    for begin, end in ((0, 1), (1, 20), (20, 20), (20, 60)):
        in_pieces.update(reward[begin:end], ended[begin:end], active[begin:end])
    expected = 1 / np.sqrt(np.var(compute_returns_naively(reward, ended, active, 0.9)) + 1e-8)
    assert together.scale == pytest.approx(expected)
    assert in_pieces.scale == pytest.approx(expected)
    np.testing.assert_allclose(together(reward), np.clip(reward * expected, -10, 10), rtol=1e-6)
    assert together(reward).dtype == np.float32
    assert together(np.array([1e9, 0.0, -1e9])).tolist() == [10, 0, -10]


def test_rewards_are_not_scaled_before_the_first_update() -> None:
    normaliser = RewardNormaliser(1, 0.99)
    np.testing.assert_allclose(normaliser(np.array([2.0])), [2.0])
    normaliser.update(np.array([[2.0]]), np.array([[False]]))
    np.testing.assert_allclose(normaliser(np.array([2.0])), [2.0])


def test_loaded_normalisers_go_on_with_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    observations, rewards = ObservationNormaliser((2,)), RewardNormaliser(2, 0.9)
    others = ObservationNormaliser((2,)), RewardNormaliser(2, 0.9)
    observations.update(rng.normal(size=(5, 2)))
    rewards.update(rng.normal(size=(5, 2)), np.zeros((5, 2), np.bool_))
    others[0].load_state_dict(observations.state_dict())
    others[1].load_state_dict(rewards.state_dict())
    batch = rng.normal(size=(5, 2))
    for one in (observations, others[0]):
        one.update(batch)
    for two in (rewards, others[1]):
        two.update(batch, batch > 1)
    assert np.array_equal(observations(batch), others[0](batch))
    assert rewards.scale == others[1].scale


def test_a_state_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        ObservationNormaliser((2,)).load_state_dict(ObservationNormaliser((3,)).state_dict())
    with pytest.raises(ValueError, match="do not fit"):
        RewardNormaliser(2, 0.9).load_state_dict(RewardNormaliser(3, 0.9).state_dict())
