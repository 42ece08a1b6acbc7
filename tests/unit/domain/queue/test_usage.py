"""Decayed usage against direct integration, and the order that it gives."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.queue import usage

START = datetime(2026, 11, 24, 12, tzinfo=UTC)


def test_a_device_second_counts_half_after_a_half_life() -> None:
    stored = usage.weighted_seconds(1, START, START + timedelta(seconds=1))
    now = usage.decayed_seconds(stored, START)
    later = usage.decayed_seconds(stored, START + timedelta(days=7))
    assert now == pytest.approx(1.0, rel=1e-5)
    assert later == pytest.approx(now / 2, rel=1e-12)


@pytest.mark.parametrize("seconds", [0.001, 60.0, 86_400.0, 30 * 86_400.0])
def test_an_interval_equals_the_sum_of_its_parts(seconds: float) -> None:
    middle, end = START + timedelta(seconds=seconds / 3), START + timedelta(seconds=seconds)
    whole = usage.weighted_seconds(4, START, end)
    parts = usage.weighted_seconds(4, START, middle) + usage.weighted_seconds(4, middle, end)
    assert parts == pytest.approx(whole, rel=1e-6)


def test_an_interval_equals_its_integral() -> None:
    seconds, steps = 3 * 86_400.0, 100_000
    width = seconds / steps
    middles = (START + timedelta(seconds=(step + 0.5) * width) for step in range(steps))
    naive = sum(usage.weight(middle) * width for middle in middles)
    exact = usage.weighted_seconds(1, START, START + timedelta(seconds=seconds))
    assert exact == pytest.approx(naive, rel=1e-9)


def test_an_empty_interval_is_no_usage() -> None:
    assert usage.weighted_seconds(8, START, START) == 0.0
    assert usage.weighted_seconds(8, START, START - timedelta(seconds=1)) == 0.0


def test_usage_is_finite_in_fifteen_years() -> None:
    then = START + timedelta(days=15 * 365)
    stored = usage.weighted_seconds(1_000, then, then + timedelta(days=1))
    assert usage.decayed_seconds(stored, then) == pytest.approx(1_000 * 86_400, rel=0.06)


@given(
    st.floats(0, 1e7), st.floats(0, 1e7), st.floats(0, 1e8), st.integers(1, 64), st.integers(1, 64)
)
def test_time_alone_never_changes_which_account_used_more(
    first: float, second: float, later: float, devices: int, others: int
) -> None:
    one = usage.weighted_seconds(devices, START, START + timedelta(seconds=first))
    two = usage.weighted_seconds(others, START, START + timedelta(seconds=second))
    moment = START + timedelta(seconds=later)
    assert (one < two) == (
        usage.decayed_seconds(one, moment) < usage.decayed_seconds(two, moment)
    ) or one == pytest.approx(two, rel=1e-12)
