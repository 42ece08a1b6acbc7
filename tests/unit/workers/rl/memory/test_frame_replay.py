import copy

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.replay_streams import Chunk, FrameStream, NaiveReplay
from workers.core.rng import derive_generator
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec

RULES = {"uniform": UniformRule, "prioritized": PrioritizedRule}


def make_spec(steps: int, num_envs: int, k: int, n_step: int = 1) -> ReplaySpec:
    observation = ((k, 2, 3), np.uint8)
    return ReplaySpec(
        capacity=steps * num_envs,
        num_envs=num_envs,
        observation=observation,
        action=((), np.int64),
        n_step=n_step,
        gamma=0.9,
    )


def make_memory(
    spec: ReplaySpec,
    *,
    rule: str = "uniform",
    spare: float = 2.0,
    seed: int = 0,
    grows: bool = False,
) -> FrameReplay:
    return FrameReplay(
        spec, RULES[rule](derive_generator(seed, "memory")), spare=spare, may_grow=grows
    )


def assert_samples_agree(replay: Replay, naive: NaiveReplay) -> int:
    """Compares samples with the expected ones; returns the number of distinct transitions."""
    expected, sample = naive.list_expected_samples(), replay.sample(8, 16)
    flat = [column.reshape(-1, *column.shape[2:]) for column in sample]
    for observation, action, reward, successor, discount, _, place in zip(*flat, strict=True):
        wanted = expected[int(place)]
        assert np.array_equal(observation, wanted[0])
        assert action == wanted[1]
        assert reward == pytest.approx(wanted[2], abs=1e-5)
        assert np.array_equal(successor, wanted[3])
        assert discount == pytest.approx(wanted[4])
    return len(set(sample.places.ravel().tolist()))


@given(
    steps=st.integers(1, 12),
    num_envs=st.integers(1, 3),
    k=st.integers(1, 4),
    n_step=st.integers(1, 4),
    end=st.sampled_from([0.0, 0.1, 0.5]),
    pieces=st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
def test_stacks_equal_those_of_a_memory_of_whole_observations(
    steps, num_envs, k, n_step, end, pieces
) -> None:
    replay = make_memory(make_spec(steps, num_envs, k, n_step), spare=2.0 * k)
    naive, stream = NaiveReplay(steps, num_envs, n_step), FrameStream(3, num_envs, k, end)
    for piece in pieces:
        chunk = stream.draw_chunk(piece)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert len(replay) == min(len(naive.rows), steps) * num_envs
        assert_samples_agree(replay, naive)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("n_step", [1, 3])
def test_short_episodes_shorten_the_memory_but_never_spoil_a_stack(rule, n_step) -> None:
    steps, num_envs, k = 200, 2, 3
    replay = make_memory(make_spec(steps, num_envs, k, n_step), rule=rule, spare=0.0)
    naive, stream = NaiveReplay(steps, num_envs, n_step), FrameStream(0, num_envs, k, end=0.5)
    lengths = set()
    for _ in range(30):
        chunk = stream.draw_chunk(26)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert assert_samples_agree(replay, naive) <= len(replay)
        lengths.add(len(replay))
    assert 100 < len(replay) < 400
    assert len(lengths) > 5
    calm = FrameStream(1, num_envs, k, end=0.0)
    for _ in range(30):
        replay.extend(*calm.draw_chunk(10).columns)
    assert len(replay) == 400


def test_stacks_that_are_not_shifted_by_one_frame_are_stored_exactly() -> None:
    generator, steps = np.random.default_rng(0), 20
    replay, naive = make_memory(make_spec(steps, 2, 3), spare=6.0), NaiveReplay(steps, 2)
    for _ in range(12):
        observation, successor = (
            generator.integers(2, size=(5, 2, 3, 2, 3)).astype(np.uint8) for _ in range(2)
        )
        flags = np.zeros((5, 2), bool)
        chunk = Chunk(
            observation,
            np.zeros((5, 2), int),
            generator.normal(size=(5, 2)),
            successor,
            flags,
            flags,
        )
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert_samples_agree(replay, naive)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_memory_of_colour_images_has_the_whole_capacity(rule, n_step) -> None:
    """Regression: channels were counted as frames, so a memory for 200 steps stored 70."""
    generator, steps, num_envs = np.random.default_rng(0), 200, 2
    replay, naive = (
        make_memory(make_spec(steps, num_envs, 3, n_step), rule=rule, spare=1 / 16, grows=True),
        NaiveReplay(steps, num_envs, n_step),
    )
    images = generator.integers(256, size=(601, num_envs, 3, 2, 3)).astype(np.uint8)
    for begin in range(0, 600, 25):
        span, flags = slice(begin, begin + 25), np.zeros((25, num_envs), bool)
        columns = (
            images[span],
            np.zeros((25, num_envs), int),
            generator.normal(size=(25, num_envs)),
            images[begin + 1 : begin + 26],
        )
        chunk = Chunk(*columns, flags, flags)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert len(replay) == min(begin + 25, steps) * num_envs
        assert_samples_agree(replay, naive)


@given(
    steps=st.integers(1, 40),
    num_envs=st.integers(1, 3),
    k=st.integers(1, 4),
    end=st.sampled_from([0.1, 0.5, 1.0]),
    pieces=st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
# This example has rows beyond the capacity.
@example(steps=10, num_envs=3, k=1, end=1.0, pieces=[3, 19, 26])
@settings(max_examples=20)
def test_a_memory_of_short_episodes_has_the_whole_capacity(steps, num_envs, k, end, pieces) -> None:
    """The capacity is kept if few frames are shared.

    This also holds if the memory was loaded meanwhile.
    """
    spec = make_spec(steps, num_envs, k)
    replay, naive, stream = (
        make_memory(spec, spare=0.0, grows=True),
        NaiveReplay(steps, num_envs),
        FrameStream(3, num_envs, k, end),
    )
    for piece in pieces:
        chunk = stream.draw_chunk(piece)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert len(replay) == min(len(naive.rows), steps) * num_envs
        assert_samples_agree(replay, naive)
        loaded = make_memory(spec, spare=0.0, grows=True)
        loaded.load_state_dict(copy.deepcopy(replay.state_dict()))
        assert_samples_agree(loaded, naive)
        replay = loaded


def test_slots_that_waited_add_no_frames_and_are_never_sampled() -> None:
    steps, num_envs, k = 15, 3, 3
    replay, naive, stream = (
        make_memory(make_spec(steps, num_envs, k)),
        NaiveReplay(steps, num_envs),
        FrameStream(2, num_envs, k),
    )
    for piece in (1, 4, 9, 30, 7):
        chunk, active = (
            stream.draw_chunk(piece),
            np.tile(stream.generator.random((1, num_envs)) < 0.6, (piece, 1)),
        )
        active[:, 0] = True
        for b in np.flatnonzero(~active[0]):
            chunk.observation[:, b] = 255
        replay.extend(*chunk.columns, active=active)
        naive.extend(chunk, active)
        assert len(replay) == len(naive.list_expected_samples())
        assert_samples_agree(replay, naive)
    assert not (replay.state_dict()["frames"]["frame"] == 255).any()


@pytest.mark.parametrize(("steps", "count"), [(1, 1), (4, 4), (4, 8)])
def test_black_observations_are_stored_too(steps, count) -> None:
    observation, successor = np.zeros((2, count, 1, 3, 2, 3), np.uint8)
    successor[:, :, -1] = np.arange(1, count + 1).reshape(-1, 1, 1, 1)
    flags = np.zeros((count, 1), bool)
    replay, naive = make_memory(make_spec(steps, 1, 3), spare=6.0), NaiveReplay(steps, 1)
    chunk = Chunk(
        observation, np.zeros((count, 1), int), np.zeros((count, 1)), successor, flags, flags
    )
    replay.extend(*chunk.columns)
    naive.extend(chunk)
    assert_samples_agree(replay, naive)


def test_a_slot_that_waited_shares_no_frames_from_before() -> None:
    steps, k = 200, 2
    replay, naive = make_memory(make_spec(steps, 2, k), spare=0.0), NaiveReplay(steps, 2)
    black, flags, zeros = np.zeros((1, k, 2, 3), np.uint8), np.zeros((1, 2), bool), np.zeros((1, 2))
    busy = FrameStream(0, 1, k, end=0.0)
    # Slot 1 has black frames, and waits most of the time.
    for step in range(900):
        moving = busy.draw_chunk(1)
        observation, successor = (
            np.concatenate((frames[0], black))[np.newaxis]
            for frames in (moving.observation, moving.next_observation)
        )
        waits = np.array([[False, step % 180 != 0]])
        chunk = Chunk(
            observation,
            zeros.astype(int),
            zeros,
            successor,
            flags,
            waits | np.array([[False, True]]),
        )
        replay.extend(*chunk.columns, active=~waits)
        naive.extend(chunk, ~waits)
        if step % 45 == 0:
            assert_samples_agree(replay, naive)
            assert len(replay) == len(naive.list_expected_samples())


def test_each_frame_is_stored_once() -> None:
    replay, stream = make_memory(make_spec(400, 1, 4)), FrameStream(0, 1, 4, end=0.0)
    replay.extend(*stream.draw_chunk(300).columns)
    assert replay.state_dict()["added"] <= 300 + 4


def test_a_million_atari_frames_take_less_than_8_gigabytes() -> None:
    spec = ReplaySpec(
        capacity=20_000,
        num_envs=8,
        observation=((4, 84, 84), np.uint8),
        action=((), np.int64),
        n_step=3,
    )
    replay = FrameReplay(spec, PrioritizedRule(derive_generator(0, "memory")))
    tree = replay.rule._tree
    arrays = [replay._frames, replay._table, replay._oldest, tree._values, *tree._sums, tree._root]
    # All arrays grow in proportion to the capacity.
    assert sum(array.nbytes for array in arrays) * 50 < 7.7e9


@pytest.mark.parametrize("before", [3, 40])
def test_a_loaded_memory_goes_on_exactly(before) -> None:
    spec = make_spec(12, 2, 3, n_step=2)
    first, second, stream = (
        make_memory(spec, spare=0.0),
        make_memory(spec, spare=0.0, seed=4),
        FrameStream(8, 2, 3, end=0.4),
    )
    first.extend(*stream.draw_chunk(before).columns)
    first.sample(1, 4)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(10):
        chunk = stream.draw_chunk(3)
        for replay in (first, second):
            replay.extend(*chunk.columns)
        assert all(
            np.array_equal(a, b)
            for a, b in zip(first.sample(2, 8), second.sample(2, 8), strict=True)
        )
        assert len(first) == len(second)


def test_a_memory_refuses_the_state_of_another_and_says_what_differs() -> None:
    spec = make_spec(12, 2, 3)
    replay = make_memory(spec)
    replay.extend(*FrameStream(0, 2, 3).draw_chunk(5).columns)
    state = replay.state_dict()
    whole = Replay(spec, UniformRule(derive_generator(0, "memory")))
    with pytest.raises(ValueError, match="shares frames"):
        replay.load_state_dict(whole.state_dict())
    with pytest.raises(ValueError, match="stored frames do not fit"):
        make_memory(spec, spare=3.0).load_state_dict(state)
    with pytest.raises(ValueError, match="observation is int32"):
        whole.load_state_dict(state)


def test_observations_without_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="use Replay"):
        make_memory(ReplaySpec(capacity=4, observation=((4,), np.float32), action=((), np.int64)))


def test_sequences_hold_the_stacks_of_consecutive_rows() -> None:
    replay, stream = make_memory(make_spec(30, 2, 3)), FrameStream(0, 2, 3)
    chunk = stream.draw_chunk(25)
    replay.extend(*chunk.columns)
    drawn = replay.sample_sequences(2, 4, 5)
    assert drawn.observation.shape == (2, 4, 5, 3, 2, 3)
    assert drawn.valid.all()
    whole = {chunk.observation[t : t + 5, b].tobytes() for t in range(21) for b in range(2)}
    assert all(drawn.observation[u, n].tobytes() in whole for u in range(2) for n in range(4))


def test_sequences_begin_where_frames_are_still_there() -> None:
    replay, stream = make_memory(make_spec(100, 2, 3), spare=0.0), FrameStream(0, 2, 3, end=0.5)
    for _ in range(5):
        chunk = stream.draw_chunk(80)
        replay.extend(*chunk.columns)
    assert len(replay) < 200
    whole = {chunk.observation[t : t + 20, b].tobytes() for t in range(61) for b in range(2)}
    drawn = replay.sample_sequences(10, 8, 20)
    assert drawn.valid.all()
    assert any(drawn.observation[u, n].tobytes() in whole for u in range(10) for n in range(8))
    with pytest.raises(ValueError, match="ask for a shorter one"):
        replay.sample_sequences(1, 1, 100)
