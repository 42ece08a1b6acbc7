"""A summary to which points are added piece by piece equals that of the whole list."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics.summaries import SeriesSummary, Threshold, read_recent

VALUES = st.one_of(
    st.floats(-1e9, 1e9), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1.5e308, 5e-324])
)


def add(summary: SeriesSummary, points: list[tuple[int, float]], **thresholds: Threshold) -> None:
    summary.add(
        np.array([step for step, _ in points], np.int64),
        np.array([step / 2 for step, _ in points], np.float64),
        np.array([value for _, value in points], np.float64),
        {int(name[1:]): value for name, value in thresholds.items()},
    )


@given(
    values=st.lists(VALUES, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    goal=st.sampled_from(["maximize", "minimize"]),
)
def test_pieces_give_the_summary_of_the_list(
    values: list[float], cuts: list[int], goal: str
) -> None:
    thresholds = {"t1": Threshold(0.5, "at_least"), "t2": Threshold(0.5, "at_most")}
    points = list(enumerate(values))
    summary = SeriesSummary(goal)  # type: ignore[arg-type]
    edges = [0, *sorted(cuts), len(points)]
    for first, last in itertools.pairwise(edges):
        add(summary, points[first:last], **thresholds)
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    assert summary.count == len(values)
    assert summary.nonfinite == len(values) - len(finite)
    if not finite:
        assert (summary.last, summary.best, summary.mean10, summary.crossings) == (
            None, None, None, {},
        )  # fmt: skip
        return
    assert summary.last == finite[-1][1]
    recent = [value for _, value in finite[-10:]]
    assert read_recent(summary.recent_text) == tuple(recent)
    largest = max(map(abs, recent))
    expected = sum(value / len(recent) for value in recent)
    assert summary.mean10 == pytest.approx(expected, abs=1e-12 * largest + 5e-324)
    best = (max if goal == "maximize" else min)(value for _, value in finite)
    assert summary.best == best
    assert summary.best_env_step == next(step for step, value in finite if value == best)
    for number, reaches in ((1, lambda value: value >= 0.5), (2, lambda value: value <= 0.5)):
        reached = [step for step, value in finite if reaches(value)]
        found = summary.crossings.get(number)
        assert (None if found is None else (found.env_step, found.wall)) == (
            (reached[0], reached[0] / 2) if reached else None
        )


@given(
    points=st.lists(st.tuples(st.integers(0, 9), VALUES, st.integers(0, 9)), max_size=30),
    cut=st.integers(0, 30),
)
def test_the_first_crossing_is_the_lowest_env_step_in_whatever_order_points_arrive(
    points: list[tuple[int, float, int]], cut: int
) -> None:
    threshold = {7: Threshold(0.0, "at_most")}
    summary = SeriesSummary()
    for part in (points[:cut], points[cut:]):
        steps, values, walls = ([one[i] for one in part] for i in range(3))
        summary.add(
            np.array(steps, np.int64),
            np.array(walls, np.float64),
            np.array(values, np.float64),
            threshold,
        )
    reached = [(step, wall) for step, value, wall in points if -math.inf < value <= 0.0]
    found = summary.crossings.get(7)
    assert (None if found is None else (found.env_step, found.wall)) == min(reached, default=None)
