"""The causes that each outcome of an attempt may have; other pairs are invalid reports."""

from collections.abc import Mapping
from typing import Final

from palestra.contract.states import Cause, Outcome

_DONE: Final = frozenset({Cause.BUDGET, Cause.SUCCESS_SCORE})
_ASKED: Final = frozenset({Cause.USER, Cause.DRAIN, Cause.PREEMPTED})
_GONE: Final = frozenset(
    {Cause.WORKER_LOST, Cause.LEASE_EXPIRED, Cause.STALE, Cause.TRAINER_KILLED}
)

CAUSES: Final[Mapping[Outcome, frozenset[Cause]]] = {
    Outcome.SUCCEEDED: _DONE | {Cause.USER},
    Outcome.PAUSED: _ASKED,
    Outcome.CANCELLED: frozenset({Cause.USER}),
    Outcome.DRAINED: frozenset({Cause.DRAIN, Cause.PREEMPTED}),
    Outcome.FAILED: frozenset(Cause) - _DONE - _ASKED - {Cause.POISON},
    Outcome.LOST: _GONE,
}
"""No attempt reports `poison`: the server finds this cause by counting quick deaths of trainers."""


def check(outcome: Outcome, cause: Cause) -> None:
    """Refuses a pair of outcome and cause that is not permitted.

    Raises:
        ValueError: With the causes that the outcome may have.
    """
    if cause not in CAUSES[outcome]:
        known = ", ".join(sorted(CAUSES[outcome]))
        raise ValueError(
            f"cause {cause.value} does not go with outcome {outcome.value}: it is one of {known}"
        )
