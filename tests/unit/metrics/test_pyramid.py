"""Cells of a pyramid equal those that are computed from the points, on every level."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics import pyramid
from app.metrics.blocks import Columns
from app.metrics.pyramid import Cells

values = st.floats(width=64) | st.sampled_from((math.nan, math.inf, -math.inf, -0.0, 1.7e308))
positions = st.integers(0, 500) | st.sampled_from((2**53 - 1, 2**47))
finite_values = st.integers(-9, 9).map(float)
points = st.lists(st.tuples(positions, values), min_size=1, max_size=80) | st.lists(
    st.tuples(st.integers(0, 60), finite_values), min_size=1, max_size=80
)


def list_naively(given_points: list[tuple[int, float]], level: int) -> dict[int, list[float]]:
    """Returns the values of each cell in their order."""
    found: dict[int, list[float]] = {}
    for x, value in given_points:
        found.setdefault(x >> level, []).append(value)
    return found


def check(cells: Cells, given_points: list[tuple[int, float]], level: int) -> None:
    """Asserts that cells are those of the points."""
    expected = list_naively(given_points, level)
    assert cells.key.tolist() == sorted(expected)
    for place, key in enumerate(sorted(expected)):
        held = expected[key]
        finite = [value for value in held if math.isfinite(value)]
        assert cells.n[place] == len(held)
        assert cells.nonfinite[place] == len(held) - len(finite)
        if not finite:
            assert all(
                math.isnan(column[place])
                for column in (cells.low, cells.high, cells.mean, cells.last)
            )
            continue
        assert cells.low[place] == min(finite)
        assert cells.high[place] == max(finite)
        assert cells.last[place] == finite[-1]
        exact = math.fsum(value / len(finite) for value in finite)
        size = math.fsum(abs(value) / len(finite) for value in finite)
        assert abs(cells.mean[place] - exact) <= 1e-9 * size + 1e-300


def aggregate(given_points: list[tuple[int, float]], level: int) -> Cells:
    x, value = zip(*given_points, strict=True)
    return pyramid.aggregate(np.array(x, np.int64), np.array(value, np.float64), level)


@given(points)
def test_every_level_of_a_pyramid_equals_the_points(given_points: list[tuple[int, float]]) -> None:
    x, value = zip(*given_points, strict=True)
    found = pyramid.build(np.array(x, np.int64), np.array(value, np.float64))
    assert all(level % 2 == 0 for level in found)
    for level, cells in found.items():
        check(cells, given_points, level)
        restored = pyramid.decode([(0, pyramid.encode(cells))])
        check(restored, given_points, level)


@given(st.lists(points, min_size=1, max_size=5), st.integers(0, 9), st.integers(0, 5))
def test_cells_of_blocks_are_merged_in_the_order_of_the_blocks(
    given_blocks: list[list[tuple[int, float]]], level: int, more: int
) -> None:
    parts, first = [], 0
    for block in given_blocks:
        cells = pyramid.decode([(first, pyramid.encode(aggregate(block, level)))])
        parts.append(pyramid.coarsen(cells, more))
        first += len(block)
    check(pyramid.join(parts), [point for block in given_blocks for point in block], level + more)


def test_many_cells_are_stored_as_columns_and_come_back() -> None:
    x = np.arange(20_000, dtype=np.int64)
    value = np.sin(x / 50.0)
    value[100], value[101] = np.nan, -0.0
    cells = pyramid.aggregate(x, value, 6)
    content = pyramid.encode(cells)
    assert len(content) < 40 * len(cells)
    (restored,) = [pyramid.decode([(7, content)])]
    for name in ("key", "n", "nonfinite", "low", "high", "mean", "last"):
        assert getattr(restored, name).tobytes() == getattr(cells, name).tobytes(), name
    assert np.array_equal(restored.at, cells.at + 7)


def test_cells_of_the_lowest_level_hold_about_64_points() -> None:
    for stride in (1, 3, 64, 1_000_000):
        x = np.arange(65_536, dtype=np.int64) * stride
        lowest = min(pyramid.build(x, np.zeros(len(x))))
        per_cell = len(x) / len(pyramid.aggregate(x, np.zeros(len(x)), lowest))
        assert 32 <= per_cell <= 129


def test_a_far_outlier_does_not_coarsen_the_lowest_level() -> None:
    x = np.append(np.arange(10_000, dtype=np.int64), 2**53 - 1)
    found = pyramid.build(x, np.zeros(len(x)))
    assert min(found) <= 6
    assert len(found[max(found)]) <= pyramid.MAX_TOP_CELLS


def test_buckets_without_points_are_part_of_a_grid() -> None:
    cells = pyramid.place(aggregate([(3, 1.0), (9, 2.0), (40, 3.0)], 0), 3, 8)
    assert cells.n.tolist() == [1, 0, 0, 0, 0, 0, 1, 0]
    assert np.isnan(cells.mean[1])


@pytest.mark.parametrize(("axis", "expected"), [("wall", 1_700_000_000_123), ("update", 5)])
def test_positions_are_counters_or_milliseconds(axis: str, expected: int) -> None:
    one = np.ones(1, np.int64)
    columns = Columns(one, one, 5 * one, one, np.array([1_700_000_000.123]), np.zeros(1))
    assert pyramid.find_positions(columns, axis).tolist() == [expected]
