"""Which queued jobs of a pool start now and on which workers, and which jobs are ahead of another.

The only place where that is decided.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.queue.start_order import Group, Heads, QueuedJob, Shares, StartOrder
from palestra.contract.names import PriorityClass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOffer:
    """A worker of the pool that is online and not draining."""

    worker_id: str
    free_slots: int
    """Slots without a live attempt and without an assignment."""
    gpus: int
    versions: frozenset[int]
    """Work order versions that it executes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """What a decision on the queue of a pool depends on, at one time."""

    shares: Shares
    heads: Mapping[Group, Heads]
    workers: Sequence[WorkerOffer]
    equipped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By key of requirements, the workers that have the code, agent, environment and formats. A
    missing or empty set means that none has: any worker may take the job, which reports what is
    missing."""
    interactive: frozenset[str] = frozenset()
    """IDs of the users with an interactive job that is assigned or live in this pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The decision that a job starts on a worker."""

    job: QueuedJob
    worker_id: str


class HoldReason(StrEnum):
    """Why a job that was reached in the order does not start."""

    NO_FITTING_WORKER = "no_fitting_worker"
    """No worker that is online has its GPUs and executes its version."""
    SLOTS_BUSY = "slots_busy"
    """No worker that could take it has a free slot."""
    INTERACTIVE_LIMIT = "interactive_limit"
    """Its person has another interactive job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for the jobs that were looked at."""

    assignments: tuple[Assignment, ...]
    holds: Mapping[str, HoldReason]
    """By job ID."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded before the free slots can all be assigned."""


class _Workers:
    """The workers of a pool and how many of their slots are free as the decision proceeds."""

    def __init__(self, state: PoolState) -> None:
        self._equipped = state.equipped
        self._all = {worker.worker_id: worker for worker in state.workers}
        self._free = {worker.worker_id: worker.free_slots for worker in state.workers}
        self.free_slots = sum(self._free.values())
        self._candidates: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def candidates(self, job: QueuedJob) -> tuple[str, ...]:
        """Returns the workers that could take a job if they had a free slot."""
        key = (job.requirements, job.gpus, job.version)
        if key not in self._candidates:
            fitting = [
                worker
                for worker in self._all.values()
                if job.gpus <= worker.gpus and job.version in worker.versions
            ]
            equipped = self._equipped.get(job.requirements, frozenset())
            chosen = [one for one in fitting if one.worker_id in equipped] or fitting
            self._candidates[key] = tuple(
                one.worker_id for one in sorted(chosen, key=lambda one: (one.gpus, one.worker_id))
            )
        return self._candidates[key]

    def take(self, job: QueuedJob) -> str | None:
        """Takes a slot of the candidate with the fewest GPUs, of these of the one with most free.

        So a job without a GPU leaves the workers with GPUs to the jobs that need them.
        """
        free = [one for one in self.candidates(job) if self._free[one] > 0]
        if not free:
            return None
        chosen = min(free, key=lambda one: (self._all[one].gpus, -self._free[one], one))
        self._free[chosen] -= 1
        self.free_slots -= 1
        return chosen


def decide(state: PoolState) -> Decision:
    """Assigns the free slots of a pool to its queued jobs.

    A job that cannot start now does not keep later ones from slots that it could not use.
    """
    order, workers = StartOrder(state.shares, state.heads), _Workers(state)
    interactive = set(state.interactive)
    assignments: list[Assignment] = []
    holds: dict[str, HoldReason] = {}
    while workers.free_slots and (job := order.next()) is not None:
        if _is_limited(job, interactive):
            holds[job.id] = HoldReason.INTERACTIVE_LIMIT
            order.skip_group()
            continue
        worker_id = workers.take(job)
        if worker_id is None:
            holds[job.id] = (
                HoldReason.SLOTS_BUSY if workers.candidates(job) else HoldReason.NO_FITTING_WORKER
            )
            continue
        assignments.append(Assignment(job=job, worker_id=worker_id))
        order.charge(job)
        if job.group.priority_class is PriorityClass.INTERACTIVE:
            interactive.add(job.group.user_id)
    return Decision(assignments=tuple(assignments), holds=holds, unloaded=order.unloaded)


class InOrder:
    """The jobs that would start one after the other if slots became free one by one.

    Leaves out jobs that no worker fits, unless there is no worker at all, and interactive jobs of
    persons who have one that is assigned or live.
    """

    def __init__(self, state: PoolState) -> None:
        self._has_workers = bool(state.workers)
        self._order = StartOrder(state.shares, state.heads)
        self._workers = _Workers(state)
        self._interactive = state.interactive

    @property
    def unloaded(self) -> Group | None:
        """The group of which more jobs have to be loaded, if that ended the order."""
        return self._order.unloaded

    def next(self) -> QueuedJob | None:
        """Returns the next job; `None` at the end of the queue or of what is loaded."""
        while (job := self._order.next()) is not None:
            if _is_limited(job, self._interactive):
                self._order.skip_group()
            elif not self._has_workers or self._workers.candidates(job):
                self._order.charge(job)
                return job
        return None

    def competes(self, one: QueuedJob, other: QueuedJob) -> bool:
        """Returns whether a worker could take either of two jobs."""
        return not set(self._workers.candidates(one)).isdisjoint(self._workers.candidates(other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was found when looking for the jobs before another one."""

    jobs: tuple[QueuedJob, ...]
    is_cut: bool
    """Whether the search ended at its limit, before it reached the job."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded to find the others."""


def list_candidates(state: PoolState, job: QueuedJob) -> tuple[str, ...]:
    """Returns the IDs of the workers that could take a job if they had a free slot."""
    return _Workers(state).candidates(job)


def jobs_ahead(state: PoolState, job: QueuedJob, limit: int) -> Ahead:
    """Returns the jobs that start before another one and compete with it for a worker.

    Once they have run, with what they are charged, it starts at the next decision at which a worker
    that it fits has a free slot.

    Args:
        state: State of the pool.
        job: The job, with its `requirements` as in the state.
        limit: Number of jobs in the order to look at.
    """
    order = InOrder(state)
    ahead: list[QueuedJob] = []
    for _ in range(limit):
        other = order.next()
        if other is None or other.id == job.id:
            return Ahead(jobs=tuple(ahead), is_cut=False, unloaded=order.unloaded)
        if order.competes(job, other):
            ahead.append(other)
    return Ahead(jobs=tuple(ahead), is_cut=True)


def _is_limited(job: QueuedJob, interactive: AbstractSet[str]) -> bool:
    return (
        job.group.priority_class is PriorityClass.INTERACTIVE and job.group.user_id in interactive
    )
