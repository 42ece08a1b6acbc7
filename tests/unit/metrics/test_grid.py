"""The common grid: equal to a reference implementation, and keeps minima and maxima."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics.grid import MAX_POSITION, Bound, Grid, downsample, to_position

values = st.one_of(
    st.floats(-1e9, 1e9),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 1e-323, -2e-320]),
)
points = st.lists(st.tuples(st.integers(0, 200), values), max_size=80)
positions = st.integers(-(2**40), MAX_POSITION)


def make_grid(start: int, end: int, buckets: int) -> Grid:
    return Grid.cover([Bound(start)], [Bound(end)], buckets)


def _summarise_naively(
    data: list[tuple[int, float]], grid: Grid, origin: int
) -> list[dict[str, float | int]]:
    held: list[list[float]] = [[] for _ in range(grid.buckets)]
    for x, value in data:
        bucket = math.floor(Fraction(x, grid.width)) - math.floor(Fraction(origin, grid.width))
        if grid.first <= bucket < grid.first + grid.buckets:
            held[bucket - grid.first].append(value)
    return [_summarise_bucket(bucket) for bucket in held]


def _summarise_bucket(bucket: list[float]) -> dict[str, float | int]:
    finite = [value for value in bucket if math.isfinite(value)]
    counts: dict[str, float | int] = {"n": len(bucket), "nonfinite": len(bucket) - len(finite)}
    if not finite:
        return {**counts, "min": math.nan, "max": math.nan, "mean": math.nan, "last": math.nan}
    mean = float(sum(map(Fraction, finite)) / len(finite))
    return {**counts, "min": min(finite), "max": max(finite), "mean": mean, "last": finite[-1]}


@given(
    points,
    st.integers(1, 50),
    st.tuples(st.integers(-10, 210), st.integers(0, 220)),
    st.sampled_from([0, 3, 17, 64]),
)
def test_grid_equals_the_reference_implementation(
    data: list[tuple[int, float]], buckets: int, bounds: tuple[int, int], origin: int
) -> None:
    grid = make_grid(bounds[0], bounds[0] + bounds[1], buckets)
    found = downsample(
        np.array([x for x, _ in data], np.int64),
        np.array([value for _, value in data], np.float64),
        grid,
        origin,
    )
    expected = _summarise_naively(data, grid, origin)
    for name in ("min", "max", "last"):
        np.testing.assert_array_equal(
            getattr(found, name), [bucket[name] for bucket in expected], name
        )
    assert found.n.tolist() == [bucket["n"] for bucket in expected]
    assert found.nonfinite.tolist() == [bucket["nonfinite"] for bucket in expected]
    scale = max((abs(value) for _, value in data if math.isfinite(value)), default=0.0)
    np.testing.assert_allclose(
        found.mean, [bucket["mean"] for bucket in expected], rtol=1e-9, atol=scale * 1e-12
    )


@given(positions, st.integers(0, 2**50), st.integers(2, 1_500))
def test_widths_are_powers_of_two_and_starts_are_multiples_of_them(
    start: int, span: int, buckets: int
) -> None:
    end = min(start + span, MAX_POSITION)
    grid = make_grid(start, end, buckets)
    assert grid.width & (grid.width - 1) == 0
    assert grid.start % grid.width == 0
    assert grid.start <= start <= end < grid.end
    assert start - grid.start < grid.width
    assert grid.end - end <= grid.width
    assert grid.buckets <= buckets
    assert grid.width == 1 or grid.buckets > buckets / 2, (
        "narrower buckets would have been too many"
    )


@given(
    st.lists(st.tuples(positions, st.integers(0, 2**40), positions), min_size=1, max_size=5),
    st.integers(3, 1_500),
)
def test_a_grid_holds_curves_with_different_origins(
    spans: list[tuple[int, int, int]], buckets: int
) -> None:
    lows = [Bound(low, origin) for low, _, origin in spans]
    highs = [Bound(low + size, origin) for low, size, origin in spans]
    grid = Grid.cover(lows, highs, buckets)
    assert grid.buckets <= buckets
    for position, origin in (*lows, *highs):
        bucket = int(grid.index(np.array([position]), origin)[0])
        assert 0 <= bucket < grid.buckets
        moved = (grid.first + bucket) * grid.width
        assert abs(moved - (position - origin)) < 2 * grid.width


@given(points, st.integers(1, 50))
def test_minima_and_maxima_are_kept_and_every_point_is_counted(
    data: list[tuple[int, float]], buckets: int
) -> None:
    grid = make_grid(0, 200, buckets)
    found = downsample(
        np.array([x for x, _ in data], np.int64), np.array([value for _, value in data]), grid
    )
    finite = [value for _, value in data if math.isfinite(value)]
    assert found.points == len(data)
    assert int(found.nonfinite.sum()) == len(data) - len(finite)
    if finite:
        assert np.nanmin(found.min) == min(finite)
        assert np.nanmax(found.max) == max(finite)
        filled = ~np.isnan(found.mean)
        assert bool(
            np.all(
                (found.min[filled] <= found.mean[filled])
                & (found.mean[filled] <= found.max[filled])
            )
        )


def test_both_ends_are_included_and_whole_numbers_get_a_bucket_each() -> None:
    for size in (2, 3, 7, 1_499, 1_500):
        x = np.arange(1, size + 1)
        grid = make_grid(1, size, size)
        assert downsample(x, x.astype(float), grid).n.tolist() == [1] * size
        assert grid.centres.tolist() == x.tolist()


def test_a_range_of_one_position_is_one_bucket() -> None:
    grid = make_grid(5, 5, 600)
    found = downsample(np.array([4, 5, 5]), np.array([1.0, 2.0, 4.0]), grid)
    assert (grid.buckets, found.n.tolist(), found.mean.tolist(), found.last.tolist()) == (
        1,
        [2],
        [3.0],
        [4.0],
    )
    assert grid.centres.tolist() == [5.0]


def test_a_range_on_both_sides_of_zero_ends_with_one_bucket_asked() -> None:
    assert make_grid(-5, 5, 1).buckets == 2


def test_huge_values_do_not_overflow_the_mean() -> None:
    found = downsample(np.zeros(3, np.int64), np.full(3, 1.7e308), make_grid(0, 1, 1))
    assert found.mean[0] == pytest.approx(1.7e308)


@pytest.mark.parametrize(
    ("axis", "x", "lower", "upper"),
    [
        ("env_step", 2.5, 2, 3),
        ("env_step", -2.5, -3, -2),
        ("update", 1e300, MAX_POSITION, MAX_POSITION),
        ("wall", 1.0005, 1_000, 1_000),
        ("relative", -0.25, -250, -250),
    ],
)
def test_coordinates_of_a_query_are_rounded_outwards(
    axis: str, x: float, lower: int, upper: int
) -> None:
    assert to_position(axis, x) == lower  # type: ignore[arg-type]
    assert to_position(axis, x, upwards=True) == upper  # type: ignore[arg-type]
