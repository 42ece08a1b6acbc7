import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.replay_streams import Chunk, NaiveReplay, VectorStream
from workers.core.rng import derive_generator
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec
from workers.snapshot.state_files import read_tree, write_tree

RULES = {"uniform": UniformRule, "prioritized": PrioritizedRule}


def make_memory(
    steps: int, num_envs: int, *, rule: str = "uniform", n_step: int = 1, seed: int = 0
) -> Replay:
    spec = ReplaySpec(
        capacity=steps * num_envs,
        num_envs=num_envs,
        observation=((3,), np.float32),
        action=((), np.int64),
        n_step=n_step,
        gamma=0.9,
    )
    return Replay(spec, RULES[rule](derive_generator(seed, "memory")))


def assert_samples_agree(replay: Replay, naive: NaiveReplay, *, batches: int = 8) -> None:
    expected = naive.list_expected_samples()
    assert len(replay) == len(expected)
    sample = replay.sample(batches, 16)
    flat = [column.reshape(-1, *column.shape[2:]) for column in sample]
    for observation, action, reward, successor, discount, weight, place in zip(*flat, strict=True):
        wanted = expected[int(place)]
        assert np.array_equal(observation, wanted[0])
        assert action == wanted[1]
        assert reward == pytest.approx(wanted[2], abs=1e-5)
        assert np.array_equal(successor, wanted[3])
        assert discount == pytest.approx(wanted[4])
        assert 0 < weight <= 1


@given(
    steps=st.integers(1, 9),
    num_envs=st.integers(1, 3),
    n_step=st.integers(1, 12),
    pieces=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    rule=st.sampled_from(sorted(RULES)),
)
def test_samples_are_those_of_a_list_of_rows(steps, num_envs, n_step, pieces, rule) -> None:
    replay, naive, stream = (
        make_memory(steps, num_envs, rule=rule, n_step=n_step),
        NaiveReplay(steps, num_envs, n_step),
        VectorStream(7, num_envs),
    )
    for piece in pieces:
        chunk = stream.draw_chunk(piece)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
        assert_samples_agree(replay, naive)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("n_step", [1, 3])
def test_every_row_is_sampled_and_slots_that_waited_never(rule, n_step) -> None:
    replay, naive, stream = (
        make_memory(5, 3, rule=rule, n_step=n_step),
        NaiveReplay(5, 3, n_step),
        VectorStream(1, 3),
    )
    for piece in (2, 4, 1, 13, 3):
        chunk, active = stream.draw_chunk(piece), stream.generator.random((piece, 3)) < 0.7
        # A slot waits only after the end of an episode.
        chunk.truncated[:-1] |= ~chunk.terminated[:-1] & ~active[1:]
        chunk.terminated &= active
        chunk.truncated |= ~active
        replay.extend(*chunk.columns, active=active)
        naive.extend(chunk, active)
        if piece == 13:
            assert_samples_agree(replay, naive)
    assert set(replay.sample(60, 16).places.ravel().tolist()) == set(naive.list_expected_samples())


def test_uniform_samples_reach_all_places_alike_and_weigh_the_same() -> None:
    replay = make_memory(10, 2)
    replay.extend(*VectorStream(0, 2).draw_chunk(13).columns)
    sample = replay.sample(500, 100)
    assert np.bincount(sample.places.ravel(), minlength=20) / 50_000 == pytest.approx(
        [1 / 20] * 20, abs=0.006
    )
    assert (sample.weight == 1).all()
    assert {column.dtype for column in (sample.reward, sample.discount, sample.weight)} == {
        np.dtype(np.float32)
    }
    assert sample.observation.shape == (500, 100, 3)


def test_capacity_is_rounded_up_to_whole_vector_steps() -> None:
    spec = ReplaySpec(
        capacity=10, num_envs=4, observation=((3,), np.float32), action=((2,), np.float32)
    )
    assert Replay(spec, UniformRule(derive_generator(0, "memory"))).capacity == 12


def test_n_step_returns_equal_a_calculation_by_hand() -> None:
    replay = make_memory(4, 1, n_step=3)
    rewards, observations = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.arange(6, dtype=np.float32)
    terminated, truncated = np.zeros((5, 1), bool), np.zeros((5, 1), bool)
    terminated[3] = True
    rows = np.stack([observations] * 3, 1)[:, np.newaxis]
    replay.extend(
        rows[:-1], np.zeros((5, 1), int), rewards[:, np.newaxis], rows[1:], terminated, truncated
    )
    sample = replay.sample(1, 200)
    expected_samples = {
        int(p): (float(r), float(d), float(s[0]))
        for p, r, d, s in zip(
            sample.places[0],
            sample.reward[0],
            sample.discount[0],
            sample.next_observation[0],
            strict=True,
        )
    }
    assert expected_samples == {
        # The episode terminates in its third row.
        1: (pytest.approx(2 + 0.9 * 4 + 0.81 * 8), 0.0, 4.0),
        # The episode terminates in its second row.
        2: (pytest.approx(4 + 0.9 * 8), 0.0, 4.0),
        3: (8.0, 0.0, 4.0),
        # The newest row replaced the oldest; no row follows it.
        0: (
            16.0,
            pytest.approx(0.9),
            5.0,
        ),
    }


def test_a_cut_separates_the_newest_rows_from_the_next() -> None:
    replay, stream = make_memory(8, 1, n_step=5), VectorStream(0, 1, end=0.0)
    first, second = stream.draw_chunk(2), stream.draw_chunk(2)
    replay.extend(*first.columns)
    replay.cut()
    replay.extend(*second.columns)
    sample = replay.sample(1, 100)
    assert {
        int(place): float(successor[2])
        for place, successor in zip(sample.places[0], sample.next_observation[0], strict=True)
    } == {
        0: 2.0,
        1: 2.0,
        2: 4.0,
        3: 4.0,
    }


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("before", [3, 11])
def test_a_loaded_memory_goes_on_exactly(rule, before) -> None:
    first, second, stream = (
        make_memory(5, 2, rule=rule, n_step=3),
        make_memory(5, 2, rule=rule, n_step=3, seed=9),
        VectorStream(3, 2),
    )
    first.extend(*stream.draw_chunk(before).columns)
    sample = first.sample(2, 8)
    first.update_errors(sample.places, np.abs(sample.reward))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(3):
        chunk = stream.draw_chunk(2)
        for replay in (first, second):
            replay.extend(*chunk.columns)
        one, other = first.sample(3, 8), second.sample(3, 8)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        for replay in (first, second):
            replay.update_errors(one.places, np.abs(one.reward))
    assert len(first) == len(second)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_state_is_restored_from_the_files_of_a_snapshot(tmp_path, rule) -> None:
    first, second = make_memory(5, 2, rule=rule), make_memory(5, 2, rule=rule, seed=9)
    first.extend(*VectorStream(3, 2).draw_chunk(8).columns)
    first.sample(1, 4)
    write_tree(tmp_path, {"memory": first.state_dict()})
    second.load_state_dict(read_tree(tmp_path)["memory"])
    assert all(
        np.array_equal(a, b) for a, b in zip(first.sample(3, 8), second.sample(3, 8), strict=True)
    )


def test_a_memory_refuses_the_state_of_another_and_says_what_differs() -> None:
    replay = make_memory(5, 2)
    replay.extend(*VectorStream(0, 2).draw_chunk(3).columns)
    state = replay.state_dict()
    with pytest.raises(ValueError, match="keeps 5 rows of each environment, this one 6"):
        make_memory(6, 2).load_state_dict(state)
    with pytest.raises(ValueError, match=r"action is int64 \[2\], here int64 \[3\]"):
        make_memory(5, 3).load_state_dict(state)
    with pytest.raises(ValueError, match="no priorities"):
        make_memory(5, 2, rule="prioritized").load_state_dict(state)
    spec = ReplaySpec(
        capacity=10, num_envs=2, observation=((4,), np.float32), action=((), np.int64)
    )
    with pytest.raises(ValueError, match="next_observation is float32"):
        Replay(spec, UniformRule(derive_generator(0, "memory"))).load_state_dict(state)
    state["rows"] = {**state["rows"], "reward": state["rows"]["reward"][:1]}
    with pytest.raises(ValueError, match="is incomplete"):
        make_memory(5, 2).load_state_dict(state)


def test_nothing_can_be_sampled_from_an_empty_memory() -> None:
    with pytest.raises(ValueError, match="holds no transition"):
        make_memory(5, 2).sample(1, 4)
    with pytest.raises(ValueError, match="holds no transition"):
        make_memory(5, 2).sample_sequences(1, 4, 2)


@pytest.mark.parametrize(
    "wrong", [{"n_step": 0}, {"n_step": 101}, {"gamma": 1.5}, {"capacity": 0}, {"num_envs": 0}]
)
def test_a_spec_names_what_is_out_of_bounds(wrong) -> None:
    right = {"capacity": 8, "observation": ((3,), np.float32), "action": ((), np.int64)}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReplaySpec(**{**right, **wrong})


def test_samples_are_copies() -> None:
    replay, stream = make_memory(4, 1), VectorStream(0, 1)
    replay.extend(*stream.draw_chunk(4).columns)
    sample = replay.sample(1, 20)
    before = sample.observation.copy()
    replay.extend(*stream.draw_chunk(4).columns)
    assert np.array_equal(sample.observation, before)


@pytest.mark.parametrize("rule", RULES)
def test_the_next_sample_fills_the_same_arrays_and_one_of_another_shape_others(rule) -> None:
    (replay, other), stream = (make_memory(64, 2, rule=rule) for _ in range(2)), VectorStream(0, 2)
    columns = stream.draw_chunk(64).columns
    for one in (replay, other):
        one.extend(*columns)
    first = replay.sample(2, 8)
    other.sample(2, 8)
    second, expected = replay.sample(2, 8), other.sample(2, 8)
    assert first.observation is second.observation
    for column, wanted in zip(second, expected, strict=True):
        assert np.array_equal(column, wanted)
    before = second.observation.copy()
    assert replay.sample(1, 8).observation.shape == (1, 8, 3)
    assert np.array_equal(second.observation, before)


@given(
    steps=st.integers(1, 9),
    num_envs=st.integers(1, 3),
    length=st.integers(1, 6),
    pieces=st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_sequences_are_consecutive_rows_of_one_environment(steps, num_envs, length, pieces) -> None:
    replay, naive, stream = (
        make_memory(steps, num_envs),
        NaiveReplay(steps, num_envs),
        VectorStream(5, num_envs),
    )
    for piece in pieces:
        chunk: Chunk = stream.draw_chunk(piece)
        replay.extend(*chunk.columns)
        naive.extend(chunk)
    kept, (first, *_) = len(naive.stored_steps), naive.stored_steps
    drawn = replay.sample_sequences(3, 5, length)
    begins = {
        (b, *row[b][0][1:].tolist()): number
        for number, row in enumerate(naive.rows)
        for b in range(num_envs)
    }
    for u in range(3):
        for n in range(5):
            b = int(drawn.observation[u, n, 0, 0])
            start = begins[b, *drawn.observation[u, n, 0, 1:].tolist()]
            whole = min(length, kept)
            assert first <= start <= first + kept - whole
            assert drawn.valid[u, n].tolist() == [i < whole for i in range(length)]
            for i in range(whole):
                observation, action, reward, successor, terminated, *_ = naive.rows[start + i][b]
                assert np.array_equal(drawn.observation[u, n, i], observation)
                assert np.array_equal(drawn.next_observation[u, n, i], successor)
                assert drawn.action[u, n, i] == action
                assert drawn.reward[u, n, i] == pytest.approx(reward)
                assert drawn.discount[u, n, i] == pytest.approx(0.0 if terminated else 0.9)
                assert drawn.reset[u, n, i] == (observation[2] == 0)


def test_sequences_begin_at_every_place_alike_but_where_they_would_not_be_whole() -> None:
    replay, stream = make_memory(6, 2), VectorStream(0, 2, end=0.0)
    replay.extend(*stream.draw_chunk(9).columns)
    starts = replay.sample_sequences(100, 100, 4).observation[:, :, 0]
    counts = np.zeros((2, 9))
    np.add.at(counts, (starts[..., 0].astype(int).ravel(), starts[..., 2].astype(int).ravel()), 1)
    assert counts[:, 3:6] / 10_000 == pytest.approx(np.full((2, 3), 1 / 6), abs=0.015)
    assert counts.sum() == counts[:, 3:6].sum()


def test_a_sequence_has_at_least_one_row() -> None:
    with pytest.raises(ValueError, match="at least 1 row"):
        make_memory(4, 1).sample_sequences(1, 1, 0)
