"""When a periodic snapshot is due, and which snapshot was saved last."""

from collections.abc import Callable

from workers.core.protocols import ClockView, Snapshotter, Trigger
from workers.core.types import SnapshotReason, StateTree


class SnapshotSchedule:
    """Saves snapshots; not twice in one iteration, unless each kind has a name of its own.

    Args:
        snapshotter: Where snapshots go.
        trigger: When a periodic one is due.
        best_apart: Each kind of snapshot is written where it is due, also where another one holds
            the same state.
    """

    def __init__(self, snapshotter: Snapshotter, trigger: Trigger, *, best_apart: bool) -> None:
        self._snapshotter = snapshotter
        self._trigger = trigger
        self._best_apart = best_apart
        self._requested = False
        self._saved_at = -1
        self.last_id: str | None = None
        """ID of the last snapshot of the present state that was saved."""

    @property
    def quiet_until(self) -> int:
        """env_steps below which no periodic snapshot is due; 0 where one was requested."""
        return 0 if self._requested else self._trigger.quiet_until

    def request(self) -> None:
        """Makes a periodic snapshot due."""
        self._requested = True

    def due(self, clock: ClockView) -> bool:
        """Returns whether a periodic snapshot is due; it is not due again afterwards."""
        due = bool(self._trigger.due(clock)) or self._requested
        self._requested = False
        return due

    def is_needed(self, clock: ClockView) -> bool:
        """Returns whether a further snapshot in this iteration would be another one."""
        return self._best_apart or self._saved_at != clock.iterations

    def save(
        self,
        state: Callable[[], StateTree],
        clock: ClockView,
        reason: SnapshotReason,
        score: float | None,
    ) -> str:
        """Saves the present state and returns the snapshot's ID."""
        self.last_id = self._snapshotter.save(state(), clock, reason, score)
        self._saved_at = clock.iterations
        return self.last_id

    def save_earlier(self, state: StateTree, clock: ClockView, score: float) -> None:
        """Saves the best state, which training has left meanwhile."""
        self._snapshotter.save(state, clock, SnapshotReason.BEST, score)

    def state_dict(self) -> StateTree:
        """Returns the state of the trigger."""
        return self._trigger.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Takes the state of the trigger over."""
        self._trigger.load_state_dict(state)
