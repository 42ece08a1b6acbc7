import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.retry import (
    COUNTED_CAUSES,
    MAX_DELAY_SECONDS,
    FailureHistory,
    compute_backoff,
    decide,
)
from palestra.contract.states import INFRASTRUCTURE_CAUSES, Cause

LONG = 3_600.0
SHORT = 5.0


def test_an_infrastructure_failure_is_retried_at_once_and_later_with_growing_delays() -> None:
    history, delays = FailureHistory(), []
    for _ in range(10):
        decision = decide(Cause.LEASE_EXPIRED, LONG, history, max_attempts=20)
        assert decision.is_requeued
        delays.append(decision.delay)
        history = decision.history
    assert delays == [0, 10, 20, 40, 80, 160, 320, 600, 600, 600]


def test_a_job_fails_once_its_infrastructure_failures_are_used_up() -> None:
    history = FailureHistory(infrastructure_failures=2)
    assert decide(Cause.WORKER_LOST, LONG, history, max_attempts=4).is_requeued
    last = decide(Cause.WORKER_LOST, LONG, history, max_attempts=3)
    assert not last.is_requeued
    assert last.cause is Cause.WORKER_LOST


def test_three_short_attempts_in_a_row_fail_the_job_as_poison() -> None:
    history = FailureHistory()
    for _ in range(2):
        decision = decide(Cause.TRAINER_KILLED, SHORT, history, max_attempts=20)
        assert decision.is_requeued
        history = decision.history
    third = decide(Cause.TRAINER_KILLED, SHORT, history, max_attempts=20)
    assert not third.is_requeued
    assert third.cause is Cause.POISON


def test_a_long_attempt_between_short_ones_resets_the_count() -> None:
    history = FailureHistory()
    for lived in (SHORT, SHORT, LONG, SHORT, SHORT):
        decision = decide(Cause.TRAINER_KILLED, lived, history, max_attempts=20)
        assert decision.is_requeued
        history = decision.history


@pytest.mark.parametrize(
    "cause", sorted(INFRASTRUCTURE_CAUSES - {Cause.TRAINER_KILLED, Cause.NOT_STARTED})
)
def test_quick_losses_of_a_worker_are_never_poison(cause: Cause) -> None:
    """Regression: three quick losses failed the job as if its trainer had died three times."""
    history = FailureHistory()
    for _ in range(10):
        decision = decide(cause, SHORT, history, max_attempts=20)
        assert decision.is_requeued
        history = decision.history
    assert history.quick_deaths == 0
    assert history.infrastructure_failures == 10


@pytest.mark.parametrize("between", [Cause.WORKER_LOST, Cause.LEASE_EXPIRED, Cause.NOT_STARTED])
def test_an_attempt_without_a_death_of_its_trainer_does_not_interrupt_the_count(
    between: Cause,
) -> None:
    history = FailureHistory()
    for cause in (Cause.TRAINER_KILLED, between, Cause.TRAINER_KILLED, between):
        decision = decide(cause, SHORT, history, max_attempts=20)
        assert decision.is_requeued
        history = decision.history
    assert decide(Cause.TRAINER_KILLED, SHORT, history, max_attempts=20).cause is Cause.POISON


def test_failed_starts_cost_no_infrastructure_failure_and_have_their_own_limit() -> None:
    history, delays = FailureHistory(infrastructure_failures=3, counted_failures=1), []
    for _ in range(3):
        decision = decide(Cause.NOT_STARTED, SHORT, history, max_attempts=4)
        assert decision.is_requeued
        delays.append(decision.delay)
        history = decision.history
    assert delays == [0, 10, 20]
    assert history == FailureHistory(infrastructure_failures=3, counted_failures=1, failed_starts=3)
    last = decide(Cause.NOT_STARTED, SHORT, history, max_attempts=4)
    assert (last.is_requeued, last.cause) == (False, Cause.NOT_STARTED)


@pytest.mark.parametrize("cause", sorted(COUNTED_CAUSES))
def test_a_counted_failure_is_retried_once_in_a_row(cause: Cause) -> None:
    first = decide(cause, LONG, FailureHistory(), max_attempts=20)
    assert first.is_requeued
    assert not decide(cause, LONG, first.history, max_attempts=20).is_requeued
    between = decide(Cause.WORKER_LOST, LONG, first.history, max_attempts=20)
    assert decide(cause, LONG, between.history, max_attempts=20).is_requeued


@pytest.mark.parametrize("cause", sorted(set(Cause) - INFRASTRUCTURE_CAUSES - COUNTED_CAUSES))
def test_all_other_failures_keep_their_cause(cause: Cause) -> None:
    decision = decide(cause, SHORT, FailureHistory(quick_deaths=2), max_attempts=20)
    assert not decision.is_requeued
    assert decision.cause is cause


@given(st.integers(0, 10_000))
def test_delays_grow_up_to_ten_minutes(failures: int) -> None:
    assert 0 <= compute_backoff(failures) <= compute_backoff(failures + 1) <= MAX_DELAY_SECONDS


@given(st.lists(st.tuples(st.sampled_from(Cause), st.floats(0, 10_000)), max_size=200))
def test_no_sequence_of_failures_is_retried_without_end(
    failures: list[tuple[Cause, float]],
) -> None:
    history, requeued = FailureHistory(), 0
    for cause, lived in failures:
        decision = decide(cause, lived, history, max_attempts=20)
        if not decision.is_requeued:
            return
        history, requeued = decision.history, requeued + 1
    assert requeued <= 3 * 20
