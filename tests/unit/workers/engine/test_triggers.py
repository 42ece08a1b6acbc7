"""Triggers and budgets for step sizes of any length."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.types import Unit
from workers.engine.budget import Budget
from workers.engine.triggers import IntervalTrigger, make_trigger


@dataclass
class Counters:
    env_steps: int = 0
    updates: int = 0
    iterations: int = 0
    epochs: int = 0
    episodes: int = 0
    wall_seconds: float = 0.0


strides = st.lists(st.integers(1, 50), max_size=200)


@given(interval=st.integers(1, 60), steps=strides)
def test_every_counts_each_multiple_once(interval: int, steps: list[int]) -> None:
    trigger, clock, fired = IntervalTrigger(interval), Counters(), 0
    for step in steps:
        before = clock.env_steps
        clock.env_steps += step
        crossed = trigger.take_due(clock)
        assert crossed == clock.env_steps // interval - before // interval
        assert trigger.take_due(clock) == 0
        fired += crossed
    assert fired == clock.env_steps // interval
    assert trigger.next == (clock.env_steps // interval + 1) * interval


@given(interval=st.integers(1, 60), steps=strides, cut=st.integers(0, 200))
def test_a_resumed_trigger_fires_at_the_same_steps(
    interval: int, steps: list[int], cut: int
) -> None:
    straight, clock = IntervalTrigger(interval), Counters()
    resumed = IntervalTrigger(interval)
    for index, step in enumerate(steps):
        clock.env_steps += step
        expected = straight.take_due(clock)
        if index == cut:
            fresh = IntervalTrigger(interval)
            fresh.load_state_dict(resumed.state_dict())
            resumed = fresh
        assert resumed.take_due(clock) == expected


@given(interval=st.integers(1, 60), at=st.integers(0, 1_000))
def test_skip_takes_the_next_multiple_above(interval: int, at: int) -> None:
    trigger, clock = IntervalTrigger(interval), Counters(env_steps=at)
    trigger.skip(clock)
    assert trigger.take_due(clock) == 0
    assert trigger.next > at
    assert trigger.next % interval == 0
    assert trigger.next - interval <= at


def test_never_is_never_due() -> None:
    assert make_trigger(None).take_due(Counters(env_steps=10**15)) == 0


def test_an_interval_is_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        IntervalTrigger(0)


@given(bound=st.integers(1, 10_000), num_envs=st.integers(1, 64), plan=st.integers(1, 300))
def test_collecting_by_the_room_left_overshoots_by_less_than_one_vector_step(
    bound: int, num_envs: int, plan: int
) -> None:
    budget, clock = Budget({Unit.ENV_STEPS: bound}), Counters()
    while not budget.is_exhausted(clock):
        room = budget.room(clock, Unit.ENV_STEPS)
        assert room > 0
        clock.env_steps += min(plan, -(-room // num_envs)) * num_envs
    assert bound <= clock.env_steps < bound + num_envs


def test_the_first_bound_ends() -> None:
    budget = Budget({Unit.ENV_STEPS: 10, Unit.EPISODES: 2, Unit.UPDATES: None})
    assert not budget.is_exhausted(Counters(env_steps=9, episodes=1, updates=10**9))
    assert budget.is_exhausted(Counters(episodes=2))
    assert budget.room(Counters(env_steps=12), Unit.ENV_STEPS) == 0


def test_a_budget_needs_a_bound() -> None:
    with pytest.raises(ValueError, match="needs a bound"):
        Budget({Unit.ENV_STEPS: None})
