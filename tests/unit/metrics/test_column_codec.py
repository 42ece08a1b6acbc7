"""Encoded columns: every bit of every value comes back, and typical curves take few bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics import blocks, column_codec
from app.metrics.blocks import Columns
from app.metrics.column_codec import ColumnDamagedError

SPECIAL = (
    0.0,
    -0.0,
    5e-324,
    -2.2e-308,
    1.7976931348623157e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_DEAD_BEEF))[0],  # NaN with a payload
    struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0001))[0],  # a signalling NaN
    float(2**53 - 1),
    float(2**53),
    -float(2**53),
    0.001,
    1.5,
    1e-7,
    1.4e-45,
)

floats = (
    st.floats(width=64)
    | st.floats(width=32)
    | st.sampled_from(SPECIAL)
    | st.integers(-(2**53), 2**53).map(float)
    | st.integers(-(10**9), 10**9).map(lambda one: one / 1_000)
)
integers = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(0, 300)
    | st.sampled_from((2**53 - 1, -(2**63), 2**63 - 1))
)


def restore(ints: list[list[int]], values: list[list[float]]) -> None:
    """Asserts that columns come back bit by bit."""
    count = len(ints[0])
    int_columns = [np.array(one, np.int64) for one in ints]
    float_columns = [np.array(one, np.float64) for one in values]
    content = column_codec.encode(int_columns, float_columns)
    found_ints, found_floats = column_codec.decode(content, count, len(ints), len(values))
    for given_column, found in zip(int_columns, found_ints, strict=True):
        assert given_column.tobytes() == found.tobytes()
    for given_floats, back in zip(float_columns, found_floats, strict=True):
        assert given_floats.tobytes() == back.tobytes()


def make_columns(n: int) -> st.SearchStrategy[tuple[list[int], list[int], list[float]]]:
    """Returns columns of `n` values: equally spaced integers, others, and floats."""
    spaced = st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**20)).map(
        lambda one: [one[0] + place * one[1] for place in range(n)]
    )
    some = spaced | st.lists(integers, min_size=n, max_size=n)
    return st.tuples(some, some, st.lists(floats, min_size=n, max_size=n))


@given(st.lists(st.integers(0, 9).flatmap(make_columns), min_size=1, max_size=6))
def test_contents_that_are_decoded_together_are_those_decoded_alone(
    given_contents: list[tuple[list[int], list[int], list[float]]],
) -> None:
    parts = [
        (
            column_codec.encode(
                [np.array(one, np.int64) for one in ints], [np.array(values, np.float64)]
            ),
            len(values),
        )
        for *ints, values in given_contents
    ]
    ints, values = column_codec.decode_many(parts, 2, 1)
    for place in range(2):
        assert ints[place].tolist() == [x for content in given_contents for x in content[place]]
    expected = np.array([x for content in given_contents for x in content[2]], np.float64)
    assert values[0].tobytes() == expected.tobytes()


@given(
    st.integers(0, 30).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(integers, min_size=n, max_size=n), min_size=1, max_size=4),
            st.lists(st.lists(floats, min_size=n, max_size=n), min_size=1, max_size=3),
        )
    )
)
def test_columns_come_back_bit_by_bit(columns: tuple[list[list[int]], list[list[float]]]) -> None:
    restore(*columns)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("place", [0, 63, 64, 199])
def test_a_special_value_among_narrow_ones_comes_back(value: float, place: int) -> None:
    for usual in (1.0, 0.5, 0.001, 0.1):
        values = [usual] * 200
        values[place] = value
        restore([list(range(200))], [values])


def test_integers_of_the_whole_range_come_back() -> None:
    restore([[-(2**63), 2**63 - 1, 0, 2**53 - 1, -1, 2**63 - 1]], [[0.0] * 6])


@given(st.binary(max_size=60), st.integers(0, 20))
def test_arbitrary_bytes_are_refused_or_have_the_right_length(content: bytes, count: int) -> None:
    try:
        ints, values = column_codec.decode(content, count, 1, 1)
    except ColumnDamagedError:
        return
    assert len(ints[0]) == len(values[0]) == count


def make_curve(value: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Columns:
    """Returns a curve as a training records it: regular steps, times of milliseconds."""
    step = np.arange(len(value), dtype=np.int64)
    gaps = np.random.default_rng(1).exponential(0.013, len(value))
    wall = np.round(1.7e9 + np.cumsum(gaps), 3)
    return Columns(step // 50, step * 64, step, step // 7, wall, value)


@pytest.mark.parametrize(("kind", "most"), [("loss", 4.0), ("return", 3.2), ("double", 8.2)])
def test_a_point_of_five_columns_takes_few_bytes(kind: str, most: float) -> None:
    noise = np.random.default_rng(2).normal(size=65_536)
    value = {
        "loss": (np.exp(-np.arange(65_536) / 3e4) * (1 + noise / 10)).astype(np.float32),
        "return": np.rint(200 + 50 * noise),
        "double": noise,
    }[kind].astype(np.float64)
    assert len(blocks.encode(make_curve(value))) / len(value) < most
