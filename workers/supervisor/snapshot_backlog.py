"""Selects the snapshot of an attempt that is uploaded next. Pure.

The order: of the run whose turn it is, the newest snapshot, then the best one where that is
another, then, while nothing newer waits, older ones. An upload that began is completed, however
many newer snapshots are written meanwhile, and the runs of a pack take turns. So uploads
that are slower than the training never starve: a snapshot that has waited for
`uploads_until_stored(runs)` uploads is stored by then, or a newer one of its run is.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from palestra.contract.telemetry import SnapshotWritten


def uploads_until_stored(runs: int) -> int:
    """Returns the number of uploads after which a snapshot or a newer one is stored.

    At most one upload is in progress, and each run may upload a newest and a best snapshot before
    the run itself has its turn.

    Args:
        runs: Runs of the attempt.
    """
    return 2 * runs + 1


@dataclass(slots=True)
class _Run:
    """Snapshots of one run that wait for their upload, in the order in which they were written."""

    waiting: list[SnapshotWritten] = field(default_factory=list)
    newest: tuple[int, int] = (-1, -1)
    """env_step and update of the newest stored snapshot."""
    best: float = -math.inf
    """Score of the best stored snapshot."""
    is_best_next: bool = False
    """Whether the first snapshot of the run's turn is stored, so that the best one comes next."""

    def choose(self) -> SnapshotWritten | None:
        if not self.waiting:
            return None
        newest = self.waiting[-1]
        best = max(self.waiting, key=_rank)
        has_better = _score(best) > self.best and best is not newest
        is_newer = _place(newest) > self.newest
        return best if has_better and (self.is_best_next or not is_newer) else newest

    def settle(self, snapshot: SnapshotWritten, *, is_stored: bool) -> None:
        self.waiting.remove(snapshot)
        if is_stored:
            self.is_best_next = not self.is_best_next and any(
                _score(one) > max(self.best, _score(snapshot)) for one in self.waiting
            )
            self.newest = max(self.newest, _place(snapshot))
            self.best = max(self.best, _score(snapshot))


class SnapshotBacklog:
    """Snapshots that are written and neither stored nor discarded."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        """In the order of their turns."""

    def __iter__(self) -> Iterator[SnapshotWritten]:
        for run in self._runs.values():
            yield from run.waiting

    def add(self, snapshot: SnapshotWritten) -> None:
        """Adds a snapshot that was just written."""
        self._runs.setdefault(snapshot.run, _Run()).waiting.append(snapshot)

    def next(self) -> SnapshotWritten | None:
        """Returns the snapshot to upload now; `None` if none waits."""
        return next(
            (chosen for run in self._runs.values() if (chosen := run.choose()) is not None), None
        )

    def settle(self, snapshot: SnapshotWritten, *, is_stored: bool) -> None:
        """Removes a snapshot that is stored, or that will never be stored.

        The turn of its run ends unless the run's best snapshot is to be uploaded next.
        """
        run = self._runs[snapshot.run]
        run.settle(snapshot, is_stored=is_stored)
        if is_stored and not run.is_best_next:
            self._runs[snapshot.run] = self._runs.pop(snapshot.run)

    def keep_only(self, exists: Callable[[SnapshotWritten], bool]) -> None:
        """Removes the snapshots whose files the trainer has deleted in favour of newer ones."""
        for run in self._runs.values():
            run.waiting = [snapshot for snapshot in run.waiting if exists(snapshot)]


def _place(snapshot: SnapshotWritten) -> tuple[int, int]:
    return snapshot.env_step, snapshot.update


def _score(snapshot: SnapshotWritten) -> float:
    return (
        snapshot.score
        if snapshot.score is not None and math.isfinite(snapshot.score)
        else -math.inf
    )


def _rank(snapshot: SnapshotWritten) -> tuple[float, int, int]:
    return _score(snapshot), snapshot.env_step, snapshot.update
