"""The workers of a pool: which of them could take a job, and how many of their slots are free."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from app.domain.queue.holds import Hold, HoldReason
from app.domain.queue.start_order import Group, QueuedJob

Equipped = Mapping[str, frozenset[str]]
"""By key of requirements, the workers that have the code, agent, environment and formats.

A missing or empty set means that none has: any worker may take the job, which reports what is
missing.
"""

_NONE: Final[frozenset[str]] = frozenset()
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOffer:
    """A worker of the pool that is online and not draining."""

    worker_id: str
    free_slots: int
    """Slots without a live attempt and without an assignment."""
    gpus: int
    versions: frozenset[int]
    """Work order versions that it executes."""
    slots: int = 1
    """All its slots: they divide its GPUs, or share them if they outnumber them."""
    takes_several_slots: bool = False
    """Whether it can start an attempt on several slots."""
    busy_until: Sequence[datetime | None] = ()
    """When each slot that is not free will be for certain; `None` if that is not known.

    Matters where jobs may take several slots.
    """
    free_until: datetime | None = None
    """When a maintenance window or a reservation of others begins: until then jobs have to end.

    `None` if none is planned. In the past where one has begun: then no job starts.
    """
    free_until_by_project: Mapping[str, datetime | None] = field(default_factory=dict)
    """The same for projects for which it differs, such as those that a reservation is for."""
    free_until_by_user: Mapping[str, datetime | None] = field(default_factory=dict)
    """The same for persons, by user ID. Of two times for a job, the later one counts."""

    def count_slots(self, gpus: int) -> int:
        """Returns how many slots together have some GPUs, whichever of its slots they are.

        A worker that cannot take several slots starts the attempt on the GPUs of one, as workers of
        the version before do.
        """
        if gpus <= 1 or not self.may_reserve:
            return 1
        if self.gpus >= self.slots:
            needed = math.ceil(gpus / (self.gpus // self.slots))
        else:
            needed = (gpus - 1) * math.ceil(self.slots / self.gpus) + 1
        return min(needed, self.slots)

    @property
    def may_reserve(self) -> bool:
        """Whether some job takes several of its slots, so that they may have to be kept for it."""
        return self.takes_several_slots and self.slots > 1 and self.gpus > 1

    def could_take(self, job: QueuedJob) -> bool:
        """Returns whether it has the GPUs and executes the version of a job."""
        return job.gpus <= self.gpus and job.version in self.versions

    def is_free_for(self, job: QueuedJob, start: datetime | None) -> bool:
        """Returns whether a job ends in the time in which it may be used.

        Args:
            job: The job.
            start: When it starts; `None` if that is not known.
        """
        end = self._find_end(job.group)
        return end is None or (start is not None and job.ends_by(end, start))

    def _find_end(self, group: Group) -> datetime | None:
        ends = (
            self.free_until_by_project.get(group.project_id, self.free_until),
            self.free_until_by_user.get(group.user_id, self.free_until),
        )
        return None if None in ends else max(end for end in ends if end is not None)


class TakenSlots(NamedTuple):
    """Slots on which a job starts; which ones is decided on the worker's machine."""

    worker_id: str
    number: int


@dataclass(slots=True)
class _Reservation:
    """Slots of a worker that are kept for a job that needs several."""

    job_id: str
    start: datetime | None
    """When it can start there at the latest; `None` if that is not known."""
    spare: int
    """Slots that are free then and that it does not need."""

    def build_hold(self, reason: HoldReason, worker_id: str) -> Hold:
        """Returns a reason why a job waits that is due to this reservation."""
        return Hold(reason, self.job_id, worker_id, self.start)

    def is_over_before(self, job: QueuedJob, now: datetime) -> bool:
        """Returns whether another job that starts now has ended when it starts."""
        return self.start is not None and job.ends_by(self.start, now)

    def permits(self, job: QueuedJob, needed: int, now: datetime) -> bool:
        """Returns whether another job may start on some of its slots now."""
        return self.is_over_before(job, now) or needed <= self.spare


class Placement:
    """The workers of a pool and how many of their slots are free as a decision proceeds.

    Args:
        workers: The workers that are online and not draining.
        equipped: The workers that have what jobs need.
        now: The time of the decision.
    """

    def __init__(self, workers: Sequence[WorkerOffer], equipped: Equipped, now: datetime) -> None:
        self._now = now
        self._equipped = dict(equipped)
        # Of equal workers the one with the lowest ID comes first.
        self._workers = sorted(workers, key=lambda one: (one.gpus, one.worker_id))
        self._free = {worker.worker_id: worker.free_slots for worker in workers}
        self.free_slots = sum(self._free.values())
        """Slots that are free and may be used."""
        self._busy_until = {worker.worker_id: worker.busy_until for worker in workers}
        """Of slots that were busy before the decision."""
        self._taken_until: dict[str, list[datetime | None]] = {}
        """Of slots that the decision took."""
        self._reservations: dict[str, _Reservation] = {}
        self._fitting: dict[tuple[frozenset[str], int, int], list[WorkerOffer]] = {}
        self._is_limited_in_time = any(
            worker.free_until is not None or worker.free_until_by_project for worker in workers
        )

    def set_busy_until(self, ends: Mapping[str, Sequence[datetime | None]]) -> None:
        """Sets until when slots of workers are busy that were busy before the decision."""
        self._busy_until |= ends

    def add_equipped(self, equipped: Equipped) -> None:
        """Adds what is known of the requirements of further jobs."""
        self._equipped |= equipped

    def candidates(self, job: QueuedJob) -> list[WorkerOffer]:
        """Returns the workers that could take a job now if they had a free slot."""
        fitting = self._list_fitting(job)
        if not self._is_limited_in_time:
            return fitting
        return [one for one in fitting if one.is_free_for(job, self._now)]

    def find_hold(self, job: QueuedJob) -> Hold | None:
        """Returns why no worker could take a job, whatever slots are free."""
        if self.candidates(job):
            return None
        if self._list_fitting(job):
            return Hold(HoldReason.NOT_FREE_LONG_ENOUGH)
        return Hold(HoldReason.NO_FITTING_WORKER)

    def take(self, job: QueuedJob) -> TakenSlots | Hold:
        """Takes slots of the candidate with the fewest GPUs, of these of the one with most free.

        So a job without a GPU leaves the workers with GPUs to the jobs that need them. A job that
        needs more slots than are free reserves the worker on which they are free first.

        Returns:
            The worker with the number of slots, or why none can start the job now.
        """
        found = self._find_worker(job)
        if isinstance(found, WorkerOffer):
            needed = found.count_slots(job.gpus)
            self._occupy(found.worker_id, needed, job)
            return TakenSlots(found.worker_id, needed)
        if found.reason is HoldReason.SLOTS_BUSY:
            self._reserve(job)
        return found

    def find_hold_now(self, job: QueuedJob) -> Hold | None:
        """Returns why a job could not start on the slots that are still free."""
        found = self._find_worker(job)
        return found if isinstance(found, Hold) else None

    def _find_worker(self, job: QueuedJob) -> WorkerOffer | Hold:
        chosen, most, held = None, 0, None
        for worker in self.candidates(job):
            if chosen is not None and worker.gpus > chosen.gpus:
                break
            free, needed = self._free[worker.worker_id], worker.count_slots(job.gpus)
            if free < needed or free <= most:
                continue
            reservation = self._reservations.get(worker.worker_id)
            if reservation is None or reservation.permits(job, needed, self._now):
                chosen, most = worker, free
            elif held is None:
                held = reservation.build_hold(HoldReason.RESERVED, worker.worker_id)
        return chosen or held or self._find_own_reservation(job) or Hold(HoldReason.SLOTS_BUSY)

    def _find_own_reservation(self, job: QueuedJob) -> Hold | None:
        """Returns the hold of a job for which slots are reserved."""
        for worker_id, reservation in self._reservations.items():
            if reservation.job_id == job.id:
                return reservation.build_hold(HoldReason.SLOTS_BUSY, worker_id)
        return None

    def _occupy(self, worker_id: str, needed: int, job: QueuedJob) -> None:
        reservation = self._reservations.get(worker_id)
        self._free[worker_id] -= needed
        self.free_slots -= needed
        taken = self._taken_until.setdefault(worker_id, [])
        taken += [job.latest_end(self._now)] * needed
        if reservation is not None and not reservation.is_over_before(job, self._now):
            reservation.spare -= needed

    def _reserve(self, job: QueuedJob) -> None:
        """Reserves the candidate on which a job that needs several slots can start first."""
        candidates = self.candidates(job)
        if any(
            worker.count_slots(job.gpus) == 1 or worker.worker_id in self._reservations
            for worker in candidates
        ):
            return
        starts = [
            (start, -self._free[worker.worker_id], number)
            for number, worker in enumerate(candidates)
            if (start := self._find_start(job, worker)) is not None
        ]
        if not starts:
            return
        start, _, number = min(starts)
        worker = candidates[number]
        worker_id, needed = worker.worker_id, worker.count_slots(job.gpus)
        is_known = start < _NEVER
        free_then = self._free[worker_id] + sum(
            end is not None and end <= start for end in self._list_busy_until(worker_id)
        )
        self._reservations[worker_id] = _Reservation(
            job.id, start if is_known else None, max(0, free_then - needed) if is_known else 0
        )
        if not is_known:
            # No job could start there, so the decision need not look for one.
            self.free_slots -= self._free[worker_id]

    def _find_start(self, job: QueuedJob, worker: WorkerOffer) -> datetime | None:
        """Returns when a worker has the slots of a job, `_NEVER` if that is not known.

        `None` if the job could not end in the time in which the worker may be used.
        """
        missing = worker.count_slots(job.gpus) - self._free[worker.worker_id]
        ends = sorted(end or _NEVER for end in self._list_busy_until(worker.worker_id))
        start = max(self._now, ends[missing - 1]) if missing <= len(ends) else _NEVER
        return start if worker.is_free_for(job, start if start < _NEVER else None) else None

    def _list_busy_until(self, worker_id: str) -> Sequence[datetime | None]:
        return (*self._busy_until[worker_id], *self._taken_until.get(worker_id, ()))

    def _list_fitting(self, job: QueuedJob) -> list[WorkerOffer]:
        """Returns the workers that have what a job needs, whenever it starts."""
        equipped = self._equipped.get(job.requirements, _NONE)
        key = (equipped, job.gpus, job.version)
        found = self._fitting.get(key)
        if found is None:
            fitting = [worker for worker in self._workers if worker.could_take(job)]
            found = [one for one in fitting if one.worker_id in equipped] or fitting
            self._fitting[key] = found
        return found
