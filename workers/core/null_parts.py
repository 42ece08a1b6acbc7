"""Null objects for parts that a training does not have."""

from collections.abc import Sequence

from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree, StopReason


class NoMemory:
    """The memory of a learner that stores no transitions, or whose transitions are not saved."""

    capacity = 0

    def __len__(self) -> int:
        return 0

    def state_dict(self) -> StateTree:
        """Returns an empty state."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing, since there is no state."""


class NoRecorder:
    """A recorder that records nothing, and the base class of recorders of some events only."""

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Discards the episodes and updates of the iteration."""

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Discards the evaluation."""

    def record_epoch(self, clock: ClockView) -> None:
        """Discards the end of an epoch."""

    def record_note(self, code: str, message: str) -> None:
        """Discards the notice."""

    def flush(self) -> None:
        """Does nothing, since no record is buffered."""

    def state_dict(self) -> StateTree:
        """Returns an empty state."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing, since there is no state."""


class NoOrders:
    """The control of a training that receives no orders."""

    order: StopReason | None = None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing: no process waits for an answer."""
