"""Blocks of a series: values are decoded bit by bit, and damaged bytes are refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics import blocks
from app.metrics.blocks import BlockDamagedError, Columns
from palestra.contract.names import MAX_STEP

counters = st.integers(0, MAX_STEP)
bits = st.integers(0, 2**64 - 1)


def _decode_float(pattern: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", pattern))[0])


@st.composite
def draw_columns(draw: st.DrawFn) -> Columns:
    size = draw(st.integers(0, 40))
    ints = [
        np.array(draw(st.lists(counters, min_size=size, max_size=size)), np.int64) for _ in range(4)
    ]
    floats = [
        np.array(
            [_decode_float(p) for p in draw(st.lists(bits, min_size=size, max_size=size))],
            np.float64,
        )
        for _ in range(2)
    ]
    extra = {"terminated": np.arange(size, dtype=np.int64)} if draw(st.booleans()) else {}
    return Columns(*ints, *floats, extra)


@given(draw_columns())
def test_a_block_returns_what_it_was_given_bit_by_bit(given_columns: Columns) -> None:
    back = blocks.decode(blocks.encode(given_columns))
    for name in ("seq", "env_step", "update", "episode", "wall", "value"):
        assert getattr(back, name).tobytes() == getattr(given_columns, name).tobytes(), name
    assert {name: array.tolist() for name, array in back.extra.items()} == {
        n: a.tolist() for n, a in given_columns.extra.items()
    }


@given(draw_columns(), st.sampled_from(("env_step", "update", "episode")))
def test_a_counter_that_is_decoded_alone_is_that_of_the_block(
    given_columns: Columns, axis: str
) -> None:
    counter, values = blocks.decode_counter(blocks.encode(given_columns), axis)
    assert counter.tolist() == getattr(given_columns, axis).tolist()
    assert values.tobytes() == given_columns.value.tobytes()


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        5e-324,
        1.7976931348623157e308,
        float(2**53 + 2),
        float("nan"),
        float("inf"),
        float("-inf"),
    ],
)
def test_special_values_are_kept(value: float) -> None:
    one = np.ones(1, np.int64)
    back = blocks.decode(blocks.encode(Columns(one, one, one, one, np.zeros(1), np.array([value]))))
    assert back.value.tobytes() == np.array([value]).tobytes()
    assert back.nonfinite == (0 if np.isfinite(value) else 1)


@given(draw_columns(), st.data())
def test_damaged_bytes_never_decode_into_other_lengths(
    given_columns: Columns, data: st.DataObject
) -> None:
    whole = blocks.encode(given_columns)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(BlockDamagedError):
        blocks.decode(cut)
    with pytest.raises(BlockDamagedError):
        blocks.decode_counter(cut, "update")


def test_a_pickle_is_refused() -> None:
    with pytest.raises(BlockDamagedError):
        blocks.decode(b"\x80\x04K\x01." + b"\0" * 20)


def test_regular_counters_are_compressed_well() -> None:
    steps = np.arange(10_000, dtype=np.int64)
    value = np.zeros(10_000)
    assert len(blocks.encode(Columns(steps, steps, steps, steps, value, value))) < 3_000


def test_concatenation_keeps_the_order() -> None:
    def make_columns(seq: int) -> Columns:
        column = np.array([seq], np.int64)
        return Columns(
            column, column, column, column, np.array([float(seq)]), np.array([float(seq)])
        )

    assert blocks.concatenate([make_columns(3), make_columns(1), make_columns(2)]).seq.tolist() == [
        3,
        1,
        2,
    ]
    assert len(blocks.concatenate([])) == 0
