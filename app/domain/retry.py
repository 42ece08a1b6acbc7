"""Decides whether the job of a failed attempt is queued again, from its cause and history.

Pure functions without input, output or clock.
"""

from dataclasses import dataclass, replace
from typing import Final

from palestra.contract.states import INFRASTRUCTURE_CAUSES, Cause

FIRST_DELAY: Final = 10.0
MAX_DELAY_SECONDS: Final = 600.0
QUICK_SECONDS: Final = 60.0
"""Seconds of life below which the death of a trainer may be due to poison."""
QUICK_DEATHS: Final = 3
FAILED_STARTS: Final = 3
"""Failed starts in a row after which a worker drains."""
COUNTED_CAUSES: Final = frozenset({Cause.HOST_OUT_OF_MEMORY, Cause.STALLED})
"""Retried once: the second in a row fails the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHistory:
    """Counts of a job's failures so far."""

    infrastructure_failures: int = 0
    """Failed starts are not among them."""
    failed_starts: int = 0
    """Attempts whose worker could not start the trainer."""
    counted_failures: int = 0
    quick_deaths: int = 0
    """Deaths of trainers in a row within a minute. Attempts of which no trainer is known to have
    died neither count nor interrupt the row, unless they lived longer.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """Whether the job is queued again after `delay` seconds, or failed with `cause`."""

    is_requeued: bool
    delay: float
    cause: Cause
    history: FailureHistory


def decide(
    cause: Cause, lived_seconds: float, history: FailureHistory, max_attempts: int
) -> RetryDecision:
    """Decides whether the job of an attempt that ended with `cause` is queued again.

    Args:
        cause: Why the attempt ended.
        lived_seconds: Time from the attempt's claim to its end.
        history: Counts of the earlier failures.
        max_attempts: Infrastructure failures after which the job fails. As many failed starts,
            counted separately, fail it too.
    """
    if cause is Cause.NOT_STARTED:
        return _decide_after_failed_start(history, max_attempts)
    infrastructure = cause in INFRASTRUCTURE_CAUSES
    counted = cause in COUNTED_CAUSES
    after = FailureHistory(
        infrastructure_failures=history.infrastructure_failures + infrastructure,
        failed_starts=history.failed_starts,
        counted_failures=history.counted_failures + 1 if counted else 0,
        quick_deaths=_count_quick_deaths(cause, lived_seconds, history),
    )
    if after.quick_deaths >= QUICK_DEATHS:
        return RetryDecision(is_requeued=False, delay=0, cause=Cause.POISON, history=after)
    if infrastructure and after.infrastructure_failures < max_attempts:
        return RetryDecision(
            is_requeued=True,
            delay=compute_backoff(after.infrastructure_failures),
            cause=cause,
            history=after,
        )
    if counted and after.counted_failures == 1:
        return RetryDecision(is_requeued=True, delay=FIRST_DELAY, cause=cause, history=after)
    return RetryDecision(is_requeued=False, delay=0, cause=cause, history=after)


def _decide_after_failed_start(history: FailureHistory, max_attempts: int) -> RetryDecision:
    after = replace(history, failed_starts=history.failed_starts + 1)
    is_requeued = after.failed_starts < max_attempts
    return RetryDecision(
        is_requeued=is_requeued,
        delay=compute_backoff(after.failed_starts) if is_requeued else 0,
        cause=Cause.NOT_STARTED,
        history=after,
    )


def _count_quick_deaths(cause: Cause, lived_seconds: float, history: FailureHistory) -> int:
    if cause not in INFRASTRUCTURE_CAUSES or lived_seconds >= QUICK_SECONDS:
        return 0
    # Only its supervisor sees a trainer die. A lost lease, supervisor or machine says nothing about
    # the trainer, which may not even have started.
    return history.quick_deaths + (cause is Cause.TRAINER_KILLED)


def compute_backoff(failures: int) -> float:
    """Returns the seconds to wait after the n-th infrastructure failure or failed start.

    None after the first, then 10 s, doubled each time up to 10 min.
    """
    if failures <= 1:
        return 0.0
    return min(FIRST_DELAY * 2.0 ** min(failures - 2, 16), MAX_DELAY_SECONDS)
