"""The table of a job's permitted state transitions. Pure."""

from collections.abc import Mapping
from typing import Final

from app.domain.errors import ConflictError
from palestra.contract.states import FINAL_JOB_STATES, JobState

_QUEUED, _STARTING, _RUNNING = JobState.QUEUED, JobState.STARTING, JobState.RUNNING
_PAUSING, _PAUSED, _CANCELLING, _PREEMPTING, _LOST = (
    JobState.PAUSING,
    JobState.PAUSED,
    JobState.CANCELLING,
    JobState.PREEMPTING,
    JobState.LOST,
)
_SUCCEEDED, _FAILED, _CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED

ALLOWED: Final[Mapping[JobState, frozenset[JobState]]] = {
    _QUEUED: frozenset({_STARTING, _PAUSED, _CANCELLED, _FAILED}),
    _STARTING: frozenset(
        {_RUNNING, _PAUSING, _CANCELLING, _PREEMPTING, _LOST, _SUCCEEDED, _FAILED}
    ),
    _RUNNING: frozenset({_PAUSING, _CANCELLING, _PREEMPTING, _LOST, _SUCCEEDED, _FAILED}),
    _PAUSING: frozenset({_PAUSED, _CANCELLING, _SUCCEEDED, _FAILED}),
    _PAUSED: frozenset({_QUEUED, _CANCELLED}),
    _CANCELLING: frozenset({_CANCELLED, _SUCCEEDED}),
    _PREEMPTING: frozenset({_QUEUED, _PAUSING, _CANCELLING, _LOST, _SUCCEEDED, _FAILED}),
    _LOST: frozenset({_QUEUED, _FAILED}),
    _SUCCEEDED: frozenset(),
    _FAILED: frozenset(),
    _CANCELLED: frozenset(),
}
"""From each state to the permitted next states.

If an attempt ends after a user's request, the request decides the next state: a trainer that dies
in `cancelling` or `pausing` leaves `cancelled` or `paused`. Work that finished before the request
arrived is `succeeded`.
"""


_HOLD_LEASE: Final = frozenset({_STARTING, _RUNNING, _PREEMPTING})


def find_state_after_pause(state: JobState) -> JobState | None:
    """Returns the state to which a request to pause leads; `None` if it is paused or pausing."""
    if state in {_PAUSING, _PAUSED}:
        return None
    return _PAUSED if state is _QUEUED else _PAUSING


def find_state_after_cancel(state: JobState) -> JobState | None:
    """Returns the state to which a request to cancel leads; `None` in that state already."""
    if state in {_CANCELLING, _CANCELLED}:
        return None
    return _CANCELLING if state in _HOLD_LEASE | {_PAUSING} else _CANCELLED


def check(old: JobState, new: JobState) -> None:
    """Refuses a transition that is not in the table.

    Raises:
        ConflictError: With the code `already_final` for a final state, else `invalid_transition`.
    """
    if new in ALLOWED[old]:
        return
    if old in FINAL_JOB_STATES:
        raise ConflictError(
            "already_final",
            f"The job has already {_ENDED[old]}; a finished job never changes again.",
        )
    raise ConflictError(
        "invalid_transition",
        f"A job that is {old} cannot become {new}. Read its state again and decide anew.",
    )


_ENDED: Final = {_SUCCEEDED: "succeeded", _FAILED: "failed", _CANCELLED: "been cancelled"}
