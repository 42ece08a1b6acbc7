"""Parts that are not there: what stands in their place says and does nothing."""

from collections.abc import Sequence

from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree, StopReason


class NoMemory:
    """The memory of a learner that keeps its data to itself, or keeps none."""

    capacity = 0

    def __len__(self) -> int:
        return 0

    def state_dict(self) -> StateTree:
        """Returns nothing."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Takes nothing over."""


class NoRecorder:
    """The recorder of a training that nobody reads, and the base of one that records a part."""

    def tick(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Does nothing."""

    def evaluation(self, clock: ClockView, result: EvaluationResult, *, final: bool) -> None:
        """Does nothing."""

    def epoch(self, clock: ClockView) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""

    def state_dict(self) -> StateTree:
        """Returns nothing."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Takes nothing over."""


class NoOrders:
    """The control of a training that nobody outside stops."""

    order: StopReason | None = None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing."""
