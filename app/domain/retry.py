"""Decides whether the job of a failed attempt is queued again, from its cause and history.

Pure functions without input, output or clock.
"""

from dataclasses import dataclass
from typing import Final

from palestra.contract.states import INFRASTRUCTURE_CAUSES, Cause

FIRST_DELAY: Final = 10.0
LONGEST_DELAY: Final = 600.0
QUICK_SECONDS: Final = 60.0
"""Seconds of life below which the death of an attempt may be due to poison."""
QUICK_DEATHS: Final = 3
COUNTED_CAUSES: Final = frozenset({Cause.HOST_OUT_OF_MEMORY, Cause.STALLED})
"""Retried once: the second in a row fails the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHistory:
    """Counts of a job's failures so far."""

    infrastructure_failures: int = 0
    counted_failures: int = 0
    quick_deaths: int = 0


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
        max_attempts: Infrastructure failures after which the job fails.
    """
    infrastructure = cause in INFRASTRUCTURE_CAUSES
    counted = cause in COUNTED_CAUSES
    quick = history.quick_deaths + 1 if infrastructure and lived_seconds < QUICK_SECONDS else 0
    after = FailureHistory(
        infrastructure_failures=history.infrastructure_failures + infrastructure,
        counted_failures=history.counted_failures + 1 if counted else 0,
        quick_deaths=quick,
    )
    if quick >= QUICK_DEATHS:
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


def compute_backoff(failures: int) -> float:
    """Returns the seconds to wait after the n-th infrastructure failure.

    None after the first, then 10 s, doubled each time up to 10 min.
    """
    return 0.0 if failures <= 1 else min(FIRST_DELAY * 2.0 ** min(failures - 2, 16), LONGEST_DELAY)
