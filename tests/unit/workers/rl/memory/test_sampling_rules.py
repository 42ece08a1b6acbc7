import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.replay_streams import VectorStream
from workers.core.rng import derive_generator
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import Priorities, PrioritizedRule, UniformRule
from workers.rl.memory.sum_tree import SumTree
from workers.rl.memory.transitions import ReplaySpec

values_of = st.floats(0, 1e6, allow_nan=False).map(lambda value: value if value > 1e-9 else 0.0)


def make_prioritized_rule(size: int, seed: int = 0, **constants: float) -> PrioritizedRule:
    rule = PrioritizedRule(derive_generator(seed, "memory"), Priorities(**constants))
    rule.reserve(size)
    rule.mark_written(0, size)
    return rule


@given(
    size=st.integers(1, 3000),
    changes=st.lists(
        st.tuples(
            st.integers(0, 2999), st.lists(values_of, min_size=1, max_size=40), st.booleans()
        ),
        max_size=8,
    ),
)
def test_the_tree_finds_what_a_running_sum_finds(size, changes) -> None:
    tree, model = SumTree(size), np.zeros(size)
    for start, values, scattered in [(0, [1.0], False), *changes]:
        if scattered:
            places = (start + np.arange(len(values)) * 37) % size
            tree.set(places, np.array(values))
            model[places] = values
        else:
            begin, end = start % size, min(start % size + len(values), size)
            tree.fill(begin, end, np.array(values[: end - begin]))
            model[begin:end] = values[: end - begin]
    assert np.array_equal(tree.values, model)
    running = model.cumsum()
    assert tree.total == pytest.approx(running[-1])
    if running[-1] > 0:
        sums = np.linspace(0, running[-1], 50, endpoint=False) * (1 + 1e-12)
        found = tree.find(sums)
        assert (model[found] > 0).all()
        slack = running[-1] * 1e-9
        assert (running[found] >= sums - slack).all()
        assert (running[found] - model[found] <= sums + slack).all()


@pytest.mark.parametrize("size", [1, 31, 33, 40_000, 1_200_000])
def test_a_tree_of_any_size_reaches_its_first_and_last_place(size) -> None:
    tree = SumTree(size)
    tree.set(np.array([0, size - 1]), np.array([1.0, 3.0]))
    total = tree.total
    assert tree.find(np.array([0.0, total * 0.99])).tolist() == [0, size - 1]
    assert tree.find(np.array([total, np.nextafter(total, 9)])).tolist() == [size - 1] * 2


def test_a_place_without_value_is_never_found() -> None:
    generator, tree = np.random.default_rng(0), SumTree(5000)
    for _ in range(50):
        tree.set(
            generator.integers(5000, size=200),
            generator.random(200) ** 8 * 1e-3 * (generator.random(200) < 0.3),
        )
        found = tree.find(generator.random(400) * tree.total)
        assert (tree.values[found] > 0).all()


def test_rounding_does_not_lead_past_the_last_value_of_a_group() -> None:
    tree = SumTree(64)
    # 2**53 - 1 minus 1.5, the sum of the first group, rounds to the sum of the second.
    tree.set(np.array([0, 33]), np.array([1.5, 2.0**53 - 2]))
    assert tree.find(np.array([2.0**53 - 1])).tolist() == [33]


def test_sums_do_not_depend_on_the_history() -> None:
    generator, worn = np.random.default_rng(0), SumTree(2000)
    for _ in range(200):
        worn.set(generator.integers(2000, size=64), generator.random(64))
    fresh = SumTree(2000)
    fresh.fill(0, 2000, worn.values)
    sums = generator.random(500) * worn.total
    assert fresh.total == worn.total
    assert np.array_equal(fresh.find(sums), worn.find(sums))


def test_places_are_drawn_in_proportion_to_the_power_of_their_errors() -> None:
    rule = make_prioritized_rule(4, alpha=0.5, epsilon=1e-9)
    rule.update_errors(np.arange(4), np.array([1.0, 4.0, 9.0, 16.0]))
    places, _ = rule.draw(4, (400, 100))
    assert np.bincount(places.ravel()) / 40_000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.01)


def test_a_batch_is_stratified() -> None:
    rule = make_prioritized_rule(64)
    places, _ = rule.draw(64, (5, 64))
    assert np.array_equal(np.sort(places, axis=1), np.tile(np.arange(64), (5, 1)))


def test_weights_are_those_of_the_paper() -> None:
    rule = make_prioritized_rule(
        5, alpha=0.7, beta=0.4, beta_final=1.0, anneal_updates=4, epsilon=1e-2
    )
    errors = np.array([0.5, 0.0, 2.0, 1.0, 3.0])
    rule.update_errors(np.arange(5), errors)
    p = (errors + 1e-2) ** 0.7
    probability = p / p.sum()
    places, weights = rule.draw(5, (6, 8))
    for update, beta in enumerate([0.4, 0.55, 0.7, 0.85, 1.0, 1.0]):
        raw = (5 * probability[places[update]]) ** -beta
        assert weights[update] == pytest.approx(raw / raw.max(), rel=1e-5)
    assert weights.dtype == np.float32
    assert rule.beta == 1.0


def test_new_rows_get_the_highest_priority_that_there_ever_was() -> None:
    rule = make_prioritized_rule(8, alpha=1.0, epsilon=1e-6)
    rule.update_errors(np.array([2]), np.array([9.0]))
    rule.update_errors(np.array([2]), np.array([3.0]))
    rule.mark_written(4, 6)
    assert rule.state_dict()["priorities"].tolist() == pytest.approx([1, 1, 3, 1, 9, 9, 1, 1])


def test_of_a_place_that_comes_twice_the_last_error_counts() -> None:
    rule = make_prioritized_rule(4, alpha=1.0, epsilon=1e-6)
    rule.update_errors(np.array([1, 2, 1]), np.array([5.0, 2.0, 0.5]))
    assert rule.state_dict()["priorities"].tolist() == pytest.approx([1, 0.5, 2, 1], abs=1e-5)


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_an_error_that_is_not_finite_does_not_spoil_the_tree(error) -> None:
    rule = make_prioritized_rule(4, alpha=1.0)
    rule.update_errors(np.array([0, 1]), np.array([error, 4.0]))
    places, weights = rule.draw(4, (20, 16))
    assert np.isfinite(weights).all()
    assert set(places.ravel().tolist()) == {0, 1, 2, 3}


def test_dropped_places_are_not_drawn_until_they_are_written() -> None:
    rule = make_prioritized_rule(4)
    rule.mark_dropped(np.array([1, 3]))
    assert set(rule.draw(4, (20, 16))[0].ravel().tolist()) == {0, 2}
    rule.mark_written(1, 2)
    assert set(rule.draw(4, (20, 16))[0].ravel().tolist()) == {0, 1, 2}


def test_a_loaded_rule_goes_on_exactly() -> None:
    first, second = make_prioritized_rule(100), make_prioritized_rule(100, seed=5)
    first.update_errors(first.draw(100, (3, 16))[0][0], np.arange(16.0))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for rule in (first, second):
        rule.mark_written(7, 9)
    for one, other in zip(first.draw(100, (4, 16)), second.draw(100, (4, 16)), strict=True):
        assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="of 100 places, this memory has 101"):
        make_prioritized_rule(101).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": -1}, {"beta": 1.5}, {"beta_final": -0.1}, {"anneal_updates": 0}, {"epsilon": 0}],
)
def test_constants_out_of_bounds_are_named(wrong) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Priorities(**wrong)


def test_uniform_is_a_stream_of_its_own_and_goes_on_after_a_load() -> None:
    first, second = (
        UniformRule(derive_generator(0, "memory")),
        UniformRule(derive_generator(1, "memory")),
    )
    first.draw(1000, (2, 10))
    second.load_state_dict(first.state_dict())
    assert np.array_equal(first.draw(1000, (2, 10))[0], second.draw(1000, (2, 10))[0])


def make_replay(rule: PrioritizedRule) -> Replay:
    return Replay(
        ReplaySpec(capacity=6, num_envs=2, observation=((3,), np.float32), action=((), np.int64)),
        rule,
    )


def test_feedback_reaches_the_places_that_were_sampled() -> None:
    rule = PrioritizedRule(derive_generator(0, "memory"), Priorities(alpha=1.0, epsilon=1e-9))
    replay = make_replay(rule)
    replay.extend(*VectorStream(0, 2).draw_chunk(3).columns)
    sample = replay.sample(1, 30)
    replay.update_errors(sample.places, np.where(sample.places == 3, 100.0, 1e-6))
    assert (replay.sample(10, 30).places == 3).mean() > 0.99


def test_feedback_for_rows_that_were_overwritten_since_is_left_out() -> None:
    rule = PrioritizedRule(derive_generator(0, "memory"), Priorities(alpha=1.0, epsilon=1e-9))
    replay, stream = make_replay(rule), VectorStream(0, 2)
    replay.extend(*stream.draw_chunk(4).columns)
    places = replay.sample(1, 100).places
    # The new rows overwrite the places 2 and 3.
    replay.extend(*stream.draw_chunk(1).columns)
    replay.update_errors(places, np.full(places.shape, 0.25))
    assert rule.state_dict()["priorities"].tolist() == pytest.approx([0.25, 0.25, 1, 1, 0.25, 0.25])
    replay.extend(*stream.draw_chunk(5).columns)
    replay.update_errors(places, np.full(places.shape, 0.5))
    assert rule.state_dict()["priorities"].tolist() == [1] * 6
