"""Which queued jobs of a pool start now and on which workers, and which jobs are ahead of another.

The only place where that is decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.queue.holds import Hold, HoldReason, RunningJobs, RunningLimits
from app.domain.queue.start_order import Group, Heads, QueuedJob, Shares, StartOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOffer:
    """A worker of the pool that is online and not draining."""

    worker_id: str
    free_slots: int
    """Slots without a live attempt and without an assignment."""
    gpus: int
    versions: frozenset[int]
    """Work order versions that it executes."""
    free_until: datetime | None = None
    """When a maintenance window or a reservation of others begins: until then jobs have to end.

    `None` if none is planned. In the past where one has begun: then no job starts.
    """
    free_until_by_project: Mapping[str, datetime | None] = field(default_factory=dict)
    """The same for projects for which it differs, such as those that a reservation is for."""

    def is_free_for(self, job: QueuedJob, now: datetime) -> bool:
        """Returns whether a job that starts now ends while the worker is free for it."""
        end = self.free_until_by_project.get(job.group.project_id, self.free_until)
        return end is None or job.ends_by(end, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """The state of a pool on which a decision on its queue is based, at one time."""

    shares: Shares
    heads: Mapping[Group, Heads]
    workers: Sequence[WorkerOffer]
    equipped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By key of requirements, the workers that have the code, agent, environment and formats. A
    missing or empty set means that none has: any worker may take the job, which reports what is
    missing."""
    interactive: frozenset[str] = frozenset()
    """IDs of the users with an interactive job that is assigned or live in this pool."""
    limits: RunningLimits = field(default_factory=RunningLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The decision that a job starts on a worker."""

    job: QueuedJob
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for the jobs that were looked at."""

    assignments: tuple[Assignment, ...]
    holds: Mapping[str, Hold]
    """By job ID."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded before the free slots can all be assigned."""


class _Workers:
    """The workers of a pool and how many of their slots are free as the decision proceeds."""

    def __init__(self, state: PoolState) -> None:
        self._now = state.shares.now
        self._equipped = state.equipped
        self._all = {worker.worker_id: worker for worker in state.workers}
        self._free = {worker.worker_id: worker.free_slots for worker in state.workers}
        self.free_slots = sum(self._free.values())
        self._fitting: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def candidates(self, job: QueuedJob) -> tuple[str, ...]:
        """Returns the workers that could take a job now if they had a free slot."""
        return tuple(
            one for one in self._list_fitting(job) if self._all[one].is_free_for(job, self._now)
        )

    def find_hold(self, job: QueuedJob) -> Hold | None:
        """Returns why no worker could take a job, whatever slots are free."""
        if not self._list_fitting(job):
            return Hold(HoldReason.NO_FITTING_WORKER)
        return None if self.candidates(job) else Hold(HoldReason.NOT_FREE_LONG_ENOUGH)

    def take(self, job: QueuedJob) -> str | None:
        """Takes a slot of the candidate with the fewest GPUs, among these with the most free slots.

        A job without a GPU therefore leaves the workers with GPUs to the jobs that need them.
        """
        free = [one for one in self.candidates(job) if self._free[one] > 0]
        if not free:
            return None
        chosen = min(free, key=lambda one: (self._all[one].gpus, -self._free[one], one))
        self._free[chosen] -= 1
        self.free_slots -= 1
        return chosen

    def _list_fitting(self, job: QueuedJob) -> tuple[str, ...]:
        """Returns the workers that meet the needs of a job, at any time of its start."""
        key = (job.requirements, job.gpus, job.version)
        if key not in self._fitting:
            fitting = [
                worker
                for worker in self._all.values()
                if job.gpus <= worker.gpus and job.version in worker.versions
            ]
            equipped = self._equipped.get(job.requirements, frozenset())
            chosen = [one for one in fitting if one.worker_id in equipped] or fitting
            self._fitting[key] = tuple(
                one.worker_id for one in sorted(chosen, key=lambda one: (one.gpus, one.worker_id))
            )
        return self._fitting[key]


def decide(state: PoolState) -> Decision:
    """Assigns the free slots of a pool to its queued jobs.

    A job that cannot start now does not block the slots that it could not use.
    """
    order, workers = StartOrder(state.shares, state.heads), _Workers(state)
    running = RunningJobs(state.limits, state.interactive)
    assignments: list[Assignment] = []
    holds: dict[str, Hold] = {}
    while workers.free_slots and (group := order.first_group()) is not None:
        held = running.find_group_hold(group)
        if held is not None:
            if (first := order.peek()) is not None:
                holds[first.id] = held
            order.skip_group()
            continue
        job = order.next()
        if job is None:
            break
        hold = running.find_hold(job.group, job.experiment) or workers.find_hold(job)
        worker_id = None if hold else workers.take(job)
        if worker_id is None:
            holds[job.id] = hold or Hold(HoldReason.SLOTS_BUSY)
            continue
        assignments.append(Assignment(job=job, worker_id=worker_id))
        order.charge(job)
        running.add(job)
    return Decision(assignments=tuple(assignments), holds=holds, unloaded=order.unloaded)


class InOrder:
    """The jobs that would start one after the other if slots became free one by one.

    Leaves out jobs that no worker fits, unless there is no worker at all, and jobs that a limit on
    running jobs holds now.
    """

    def __init__(self, state: PoolState) -> None:
        self._has_workers = bool(state.workers)
        self._order = StartOrder(state.shares, state.heads)
        self._workers = _Workers(state)
        self._running = RunningJobs(state.limits, state.interactive)

    @property
    def unloaded(self) -> Group | None:
        """The group that ended the order, since more of its jobs have to be loaded; else `None`."""
        return self._order.unloaded

    def next(self) -> QueuedJob | None:
        """Returns the next job; `None` at the end of the queue or of what is loaded."""
        while (group := self._order.first_group()) is not None:
            if self._running.find_group_hold(group) is not None:
                self._order.skip_group()
                continue
            job = self._order.next()
            if job is None:
                return None
            if self.find_hold(job) is None:
                self._order.charge(job)
                return job
        return None

    def find_hold(self, job: QueuedJob) -> Hold | None:
        """Returns why a job could not start now even on a free slot; `None` if it could."""
        held = self._running.find_hold(job.group, job.experiment)
        return held or (self._workers.find_hold(job) if self._has_workers else None)

    def competes(self, one: QueuedJob, other: QueuedJob) -> bool:
        """Returns whether a worker could take either of two jobs, or a limit counts both."""
        return self._running.share_limit(one, other) or not set(
            self._workers.candidates(one)
        ).isdisjoint(self._workers.candidates(other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The jobs that start before another job, as far as they were looked at."""

    jobs: tuple[QueuedJob, ...]
    is_cut: bool
    """Whether the search ended at its limit, before it reached the job."""
    hold: Hold | None = None
    """Why the job could not start even on a free slot; then no jobs are looked for."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded to find the others."""


def list_candidates(state: PoolState, job: QueuedJob) -> tuple[str, ...]:
    """Returns the IDs of the workers that could take a job if they had a free slot."""
    return _Workers(state).candidates(job)


def jobs_ahead(state: PoolState, job: QueuedJob, limit: int) -> Ahead:
    """Returns the jobs that start before another one and compete with it for a worker.

    Once these jobs have started and been charged, `job` starts at the next decision at which a
    worker that it fits has a free slot.

    Args:
        state: State of the pool.
        job: The job, with its `requirements` as in the state.
        limit: Number of jobs in the order to look at.
    """
    order = InOrder(state)
    hold = order.find_hold(job)
    if hold is not None:
        return Ahead(jobs=(), is_cut=False, hold=hold)
    ahead: list[QueuedJob] = []
    for _ in range(limit):
        other = order.next()
        if other is None or other.id == job.id:
            return Ahead(jobs=tuple(ahead), is_cut=False, unloaded=order.unloaded)
        if order.competes(job, other):
            ahead.append(other)
    return Ahead(jobs=tuple(ahead), is_cut=True)
