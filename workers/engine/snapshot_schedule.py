"""Tracks when a periodic snapshot is due, and which snapshot was saved last."""

from workers.core.protocols import ClockView, Snapshotter, Trigger
from workers.core.types import SnapshotReason, StateTree


class SnapshotSchedule:
    """Saves snapshots, at most one per iteration unless `saves_best_separately` is set.

    Args:
        snapshotter: Writes the snapshots.
        trigger: Fires when a periodic snapshot is due.
        saves_best_separately: Whether to write each kind of snapshot that is due, even if another
            one of the iteration holds the same state.
    """

    def __init__(
        self, snapshotter: Snapshotter, trigger: Trigger, *, saves_best_separately: bool
    ) -> None:
        self._snapshotter = snapshotter
        self._trigger = trigger
        self._saves_best_separately = saves_best_separately
        self._is_requested = False
        self._saved_at = -1
        self.last_id: str | None = None
        """ID of the last snapshot that `save` wrote; `None` before the first."""

    @property
    def quiet_until(self) -> int:
        """Number of env_steps before which no periodic snapshot is due; 0 if one is requested."""
        return 0 if self._is_requested else self._trigger.quiet_until

    def request(self) -> None:
        """Makes a periodic snapshot due."""
        self._is_requested = True

    def take_due(self, clock: ClockView) -> bool:
        """Returns whether a periodic snapshot is due, and clears the request for it."""
        due = bool(self._trigger.take_due(clock)) or self._is_requested
        self._is_requested = False
        return due

    def is_needed(self, clock: ClockView) -> bool:
        """Returns whether this iteration needs a snapshot.

        Always true with `saves_best_separately`.
        """
        return self._saves_best_separately or self._saved_at != clock.iterations

    def save(
        self,
        state: StateTree,
        clock: ClockView,
        reason: SnapshotReason,
        score: float | None,
    ) -> str:
        """Saves the current `state` and returns the snapshot's ID."""
        self.last_id = self._snapshotter.save(state, clock, reason, score)
        self._saved_at = clock.iterations
        return self.last_id

    def save_earlier(self, state: StateTree, clock: ClockView, score: float) -> None:
        """Saves an earlier state that a background evaluation found to be the best."""
        self._snapshotter.save(state, clock, SnapshotReason.BEST, score)

    def state_dict(self) -> StateTree:
        """Returns the state of the trigger."""
        return self._trigger.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of the trigger."""
        self._trigger.load_state_dict(state)
