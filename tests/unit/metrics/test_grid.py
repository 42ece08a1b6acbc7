"""The common grid: equal to a reference implementation, and keeps minima and maxima."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics.grid import Grid, downsample

values = st.one_of(
    st.floats(-1e9, 1e9),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324]),
)
points = st.lists(st.tuples(st.integers(0, 200).map(float), values), max_size=80)


def _summarise_naively(data: list[tuple[float, float]], grid: Grid) -> list[dict[str, float | int]]:
    held: list[list[float]] = [[] for _ in range(grid.buckets)]
    for x, value in data:
        if grid.start <= x <= grid.end:
            place = (
                0
                if grid.end == grid.start
                else min(
                    int((x - grid.start) / (grid.end - grid.start) * grid.buckets), grid.buckets - 1
                )
            )
            held[place].append(value)
    return [_summarise_bucket(bucket) for bucket in held]


def _summarise_bucket(bucket: list[float]) -> dict[str, float | int]:
    finite = [value for value in bucket if math.isfinite(value)]
    counts: dict[str, float | int] = {"n": len(bucket), "nonfinite": len(bucket) - len(finite)}
    if not finite:
        return {**counts, "min": math.nan, "max": math.nan, "mean": math.nan, "last": math.nan}
    mean = math.fsum(value / len(finite) for value in finite)
    return {**counts, "min": min(finite), "max": max(finite), "mean": mean, "last": finite[-1]}


@given(points, st.integers(1, 50), st.tuples(st.integers(-10, 210), st.integers(0, 220)))
def test_grid_equals_the_reference_implementation(
    data: list[tuple[float, float]], buckets: int, bounds: tuple[int, int]
) -> None:
    grid = Grid.from_range(float(bounds[0]), float(bounds[0] + bounds[1]), buckets)
    found = downsample(np.array([x for x, _ in data]), np.array([value for _, value in data]), grid)
    expected = _summarise_naively(data, grid)
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


@given(points, st.integers(1, 50))
def test_minima_and_maxima_are_kept_and_every_point_is_counted(
    data: list[tuple[float, float]], buckets: int
) -> None:
    grid = Grid.from_range(0.0, 200.0, buckets)
    found = downsample(np.array([x for x, _ in data]), np.array([value for _, value in data]), grid)
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
        x = np.arange(1.0, size + 1)
        assert downsample(x, x, Grid.from_range(1.0, float(size), size)).n.tolist() == [1] * size


def test_a_range_of_no_width_is_one_bucket() -> None:
    grid = Grid.from_range(5.0, 5.0, 600)
    found = downsample(np.array([4.0, 5.0, 5.0]), np.array([1.0, 2.0, 4.0]), grid)
    assert (grid.buckets, found.n.tolist(), found.mean.tolist(), found.last.tolist()) == (
        1,
        [2],
        [3.0],
        [4.0],
    )
    assert grid.centres.tolist() == [5.0]


def test_huge_values_do_not_overflow_the_mean() -> None:
    found = downsample(np.zeros(3), np.full(3, 1.7e308), Grid.from_range(0.0, 1.0, 1))
    assert found.mean[0] == pytest.approx(1.7e308)
