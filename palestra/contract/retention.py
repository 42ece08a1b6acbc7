"""The rule on kept snapshots that worker and server share."""

from typing import Protocol

from palestra.contract.states import SnapshotReason


class SnapshotPlace(Protocol):
    """Reason and counters of a snapshot."""

    @property
    def reason(self) -> str:
        """Value of a `SnapshotReason`."""

    @property
    def env_step(self) -> int:
        """env_steps of its run."""

    @property
    def update(self) -> int:
        """Updates of its run."""

    @property
    def episode(self) -> int:
        """Episodes of its run."""


def is_replaced(snapshot: SnapshotPlace, newer: SnapshotPlace) -> bool:
    """Returns whether a snapshot is that before the final evaluation, and the newer one the final.

    Both have the same state, so the first need not be kept.
    """
    return (
        (snapshot.reason, newer.reason) == (SnapshotReason.PERIODIC, SnapshotReason.FINISH)
        and snapshot.env_step == newer.env_step
        and snapshot.update == newer.update
        and snapshot.episode == newer.episode
    )
