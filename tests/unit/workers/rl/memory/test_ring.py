import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.rl.memory.ring import RowRing

FIELDS = {"number": ((), np.int64), "pair": ((2,), np.float32)}


def make_rows(begin: int, count: int) -> list[np.ndarray]:
    numbers = np.arange(begin, begin + count)
    return [numbers, np.stack([numbers, -numbers], 1)]


@given(capacity=st.integers(1, 12), counts=st.lists(st.integers(0, 30), max_size=12))
def test_ring_keeps_the_newest_rows_like_a_list(capacity, counts) -> None:
    ring, model = RowRing(capacity, FIELDS), []
    for count in counts:
        begin = len(model)
        ring.extend(make_rows(begin, count))
        model += range(begin, begin + count)
    kept = model[-capacity:]
    assert len(ring) == len(kept)
    assert ring.total == len(model)
    numbers, pairs = ring.take(np.arange(len(ring)))
    assert sorted(numbers.tolist()) == kept
    assert all(number % capacity == place for place, number in enumerate(numbers.tolist()))
    assert np.array_equal(pairs, np.stack([numbers, -numbers], 1))


@given(capacity=st.integers(1, 9), before=st.integers(0, 30), after=st.integers(0, 30))
def test_a_loaded_ring_goes_on_like_the_one_that_was_saved(capacity, before, after) -> None:
    first, second = RowRing(capacity, FIELDS), RowRing(capacity, FIELDS)
    first.extend(make_rows(0, before))
    second.load_state_dict(first.state_dict())
    for ring in (first, second):
        ring.extend(make_rows(before, after))
    places = np.arange(len(first))
    assert len(first) == len(second)
    assert all(
        np.array_equal(one, other)
        for one, other in zip(first.take(places), second.take(places), strict=True)
    )


def test_take_copies_and_keeps_the_shape_of_the_places() -> None:
    ring = RowRing(4, FIELDS)
    ring.extend(make_rows(0, 4))
    numbers, pairs = ring.take(np.array([[3, 0], [1, 1]]))
    assert numbers.tolist() == [[3, 0], [1, 1]]
    assert pairs.shape == (2, 2, 2)
    ring.extend(make_rows(4, 4))
    assert numbers.tolist() == [[3, 0], [1, 1]]


def test_a_ring_refuses_the_state_of_another_ring() -> None:
    small, large = RowRing(3, FIELDS), RowRing(5, FIELDS)
    small.extend(make_rows(0, 5))
    with pytest.raises(ValueError, match="does not fit"):
        large.load_state_dict(small.state_dict())
