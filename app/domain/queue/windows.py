"""Maintenance windows and reservations: until when workers are free, and for whom. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWindow:
    """A window of a pool that has not ended."""

    id: str
    pool: str
    is_maintenance: bool
    start: datetime
    end: datetime
    workers: frozenset[str] = frozenset()
    """IDs of its workers; empty for all workers of the pool."""
    project_id: str | None = None
    """Project that a reservation is for."""
    user_id: str | None = None
    """Person that a reservation is for."""
    reason: str = ""

    def covers(self, worker_id: str) -> bool:
        """Returns whether it takes a worker of its pool."""
        return not self.workers or worker_id in self.workers

    def is_for(self, project_id: str, user_id: str) -> bool:
        """Returns whether a reservation is for the jobs of a person in a project."""
        return project_id == self.project_id or user_id == self.user_id

    def shares_workers(self, workers: frozenset[str]) -> bool:
        """Returns whether some workers, or all if there are none, include one of its own."""
        return not self.workers or not workers or not self.workers.isdisjoint(workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeTime:
    """Until when a worker is free: the members of `WorkerOffer` that say so."""

    free_until: datetime | None = None
    free_until_by_project: Mapping[str, datetime | None] = field(default_factory=dict)
    free_until_by_user: Mapping[str, datetime | None] = field(default_factory=dict)


def find_free_time(worker_id: str, windows: Iterable[PlannedWindow]) -> FreeTime:
    """Returns until when a worker is free, from the windows of its pool that have not ended."""
    own = [window for window in windows if window.covers(worker_id)]
    if not own:
        return FreeTime()
    projects = {one.project_id for one in own if one.project_id is not None}
    users = {one.user_id for one in own if one.user_id is not None}
    return FreeTime(
        free_until=_find_first_start(own),
        free_until_by_project={
            project_id: _find_first_start([one for one in own if one.project_id != project_id])
            for project_id in projects
        },
        free_until_by_user={
            user_id: _find_first_start([one for one in own if one.user_id != user_id])
            for user_id in users
        },
    )


def find_blocking(
    windows: Iterable[PlannedWindow], project_id: str, user_id: str
) -> PlannedWindow | None:
    """Returns the first window that is not for the jobs of a person in a project."""
    others = [window for window in windows if not window.is_for(project_id, user_id)]
    return min(others, key=lambda window: (window.start, window.id), default=None)


def describe(window: PlannedWindow) -> str:
    """Returns a window in words: `Maintenance of the pool lab from 2026-11-25 08:00 to ...`."""
    kind = "Maintenance" if window.is_maintenance else "A reservation for others"
    workers = f"{len(window.workers)} workers of the pool" if window.workers else "the pool"
    workers = workers.replace("1 workers", "a worker") if len(window.workers) == 1 else workers
    times = f"from {window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC"
    reason = f" ({window.reason.rstrip('.')})" if window.reason else ""
    return f"{kind} of {workers} {window.pool} {times}{reason}"


def _find_first_start(windows: Sequence[PlannedWindow]) -> datetime | None:
    return min((window.start for window in windows), default=None)
