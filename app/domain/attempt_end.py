"""The states that a job enters when its attempt ends. Pure."""

from collections.abc import Mapping
from typing import Final

from palestra.contract.states import INFRASTRUCTURE_CAUSES, Cause, JobState, Outcome

_STOPPED: Final[Mapping[JobState, JobState]] = {
    JobState.CANCELLING: JobState.CANCELLED,
    JobState.PAUSING: JobState.PAUSED,
}
"""A user's pending request decides the next state, whatever outcome the attempt reports."""


def list_states(
    state: JobState, outcome: Outcome, cause: Cause, *, is_requeued: bool, has_begun: bool = False
) -> tuple[JobState, ...]:
    """Returns the states that the job enters, in order.

    Args:
        state: The job's state, one of those that hold a lease.
        outcome: How the attempt ended.
        cause: Why the attempt ended.
        is_requeued: Whether the retry rule queues the job again.
        has_begun: Whether the job was paused or had an attempt before. With the cause
            `code_changed` it is then paused again.
    """
    if outcome is Outcome.SUCCEEDED:
        return (JobState.SUCCEEDED,)
    if outcome in {Outcome.FAILED, Outcome.LOST}:
        if cause is not Cause.CODE_CHANGED or not has_begun:
            return _after_failure(state, cause, is_requeued=is_requeued)
        outcome = Outcome.PAUSED
    if state in _STOPPED:
        return (_STOPPED[state],)
    if outcome is Outcome.CANCELLED:
        return (JobState.CANCELLING, JobState.CANCELLED)
    if outcome is Outcome.PAUSED:
        return (JobState.PAUSING, JobState.PAUSED)
    return (
        (JobState.QUEUED,)
        if state is JobState.PREEMPTING
        else (JobState.PREEMPTING, JobState.QUEUED)
    )


def _after_failure(state: JobState, cause: Cause, *, is_requeued: bool) -> tuple[JobState, ...]:
    if state is JobState.CANCELLING or (state is JobState.PAUSING and is_requeued):
        return (_STOPPED[state],)
    if is_requeued:
        return (JobState.LOST, JobState.QUEUED)
    infrastructure = cause in INFRASTRUCTURE_CAUSES and state is not JobState.PAUSING
    return (JobState.LOST, JobState.FAILED) if infrastructure else (JobState.FAILED,)


def describe_cause(cause: Cause) -> str:
    """Returns the failure message for an attempt whose trainer reported none."""
    return _SENTENCES.get(cause, f"The attempt ended: {cause.value.replace('_', ' ')}.")


_SENTENCES: Final[Mapping[Cause, str]] = {
    Cause.LEASE_EXPIRED: (
        "The worker was silent for too long and the attempt was given up. Check that it "
        "runs and reaches the server."
    ),
    Cause.WORKER_LOST: (
        "The worker's machine or its supervisor of this attempt is gone. Check the machine."
    ),
    Cause.TRAINER_KILLED: (
        "The trainer was killed by a signal. Check the machine's memory and its system log."
    ),
    Cause.NOT_STARTED: (
        "The worker could not start the trainer. Check the worker, and the log of its supervisor."
    ),
    Cause.POISON: (
        "The trainer died three times within a minute of its start. Read the log of the last "
        "attempt before you try again."
    ),
}
