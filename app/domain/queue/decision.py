"""Which queued jobs of a pool start now and on which workers, and which jobs are ahead of another.

The only place where that is decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from app.domain.queue.holds import Hold, RunningJobs, RunningLimit, RunningLimits
from app.domain.queue.placement import Equipped, Placement, WorkerOffer
from app.domain.queue.start_order import (
    ExperimentKey,
    Group,
    Heads,
    QueuedJob,
    Shares,
    StartOrder,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """What a decision on the queue of a pool depends on, at one time."""

    shares: Shares
    heads: Mapping[Group, Heads]
    workers: Sequence[WorkerOffer]
    equipped: Equipped = field(default_factory=dict)
    interactive: frozenset[str] = frozenset()
    """IDs of the users with an interactive job that is assigned or live in this pool."""
    limits: RunningLimits = field(default_factory=RunningLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedHeads:
    """The first jobs of some groups, with what a decision on them depends on."""

    heads: Mapping[Group, Heads]
    equipped: Equipped
    """Of the requirements of these jobs."""
    experiments: Mapping[ExperimentKey, RunningLimit]
    """The limits of the experiments of these jobs."""
    busy_until: Mapping[str, Sequence[datetime | None]] = field(default_factory=dict)
    """Until when the slots of workers are busy that a job may have to reserve, by worker ID; empty
    while no job was loaded that needs several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The decision that a job starts on a worker."""

    job: QueuedJob
    worker_id: str
    slots: int = 1
    """Slots of the worker that the job takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for the jobs that were looked at."""

    assignments: tuple[Assignment, ...]
    holds: Mapping[str, Hold]
    """By job ID."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded before the free slots can all be assigned."""


class Decider:
    """Assigns the free slots of a pool, and continues once more jobs are loaded.

    Args:
        state: State of the pool, whose groups need not be loaded.
    """

    def __init__(self, state: PoolState) -> None:
        self._order = StartOrder(state.shares, state.heads)
        self._workers = Placement(state.workers, state.equipped, state.shares.now)
        self._running = RunningJobs(state.limits, state.interactive)
        self._assignments: list[Assignment] = []
        self._holds: dict[str, Hold] = {}

    def load(self, found: LoadedHeads) -> None:
        """Replaces the jobs of some groups; those that were passed over are left out."""
        self._workers.add_equipped(found.equipped)
        if found.busy_until:
            self._workers.set_busy_until(found.busy_until)
        self._running.add_limits(found.experiments)
        self._order.load(found.heads)

    def list_wanted(self, spare: int) -> dict[Group, int]:
        """Returns the groups to load next, with how many jobs of each may start.

        Args:
            spare: Number of further groups to load, since jobs of the first ones may not start.
        """
        return _list_wanted(self._order, self._workers.free_slots, spare)

    def run(self) -> Decision:
        """Assigns slots until none is free, or until a group has to be loaded."""
        order, running = self._order, self._running
        while self._workers.free_slots and (group := order.first_group()) is not None:
            held = running.find_group_hold(group)
            if held is not None:
                if (first := order.peek()) is not None:
                    self._holds[first.id] = held
                order.skip_group()
                continue
            job = order.next()
            if job is None:
                break
            self._place(job)
        return Decision(
            assignments=tuple(self._assignments), holds=self._holds, unloaded=order.unloaded
        )

    def find_hold(self, job: QueuedJob) -> Hold | None:
        """Returns why a job does not start on the slots that are left, reached or not."""
        held = self._running.find_hold(job.group, job.experiment)
        return held or self._workers.find_hold(job) or self._workers.find_hold_now(job)

    def _place(self, job: QueuedJob) -> None:
        hold = self._running.find_hold(job.group, job.experiment) or self._workers.find_hold(job)
        taken = hold or self._workers.take(job)
        if isinstance(taken, Hold):
            self._holds[job.id] = taken
            return
        self._assignments.append(Assignment(job=job, worker_id=taken.worker_id, slots=taken.number))
        self._order.charge(job)
        self._running.add(job)


def decide(state: PoolState) -> Decision:
    """Assigns the free slots of a pool to its queued jobs.

    A job that cannot start now does not keep later ones from slots that it could not use.
    """
    return Decider(state).run()


class InOrder:
    """The jobs that would start one after the other if slots became free one by one.

    Leaves out jobs that no worker fits, unless there is no worker at all, and jobs that a limit on
    running jobs holds now.
    """

    def __init__(self, state: PoolState) -> None:
        self._has_workers = bool(state.workers)
        self._order = StartOrder(state.shares, state.heads)
        self._workers = Placement(state.workers, state.equipped, state.shares.now)
        self._running = RunningJobs(state.limits, state.interactive)

    @property
    def unloaded(self) -> Group | None:
        """The group of which more jobs have to be loaded, if that ended the order."""
        return self._order.unloaded

    def load(self, found: LoadedHeads) -> None:
        """Replaces the jobs of some groups; those that were passed over are left out."""
        self._workers.add_equipped(found.equipped)
        self._running.add_limits(found.experiments)
        self._order.load(found.heads)

    def list_wanted(self, number: int, spare: int) -> dict[Group, int]:
        """Returns the groups to load for the next jobs, with how many of each may be among them.

        Args:
            number: Number of jobs.
            spare: Number of further groups to load, since jobs of the first ones may be left out.
        """
        return _list_wanted(self._order, number, spare)

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

    def list_candidates(self, job: QueuedJob) -> set[str]:
        """Returns the IDs of the workers that could take a job if they had a free slot."""
        return {worker.worker_id for worker in self._workers.candidates(job)}

    def competes(self, one: QueuedJob, other: QueuedJob) -> bool:
        """Returns whether a worker could take either of two jobs, or a limit counts both."""
        return self._running.share_limit(one, other) or not self.list_candidates(one).isdisjoint(
            self.list_candidates(other)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was found when looking for the jobs before another one."""

    jobs: tuple[QueuedJob, ...]
    is_cut: bool
    """Whether the search ended at its limit, before it reached the job."""
    hold: Hold | None = None
    """Why the job could not start even on a free slot; then no jobs are looked for."""
    unloaded: Group | None = None
    """A group of which more jobs have to be loaded to find the others."""


class AheadSearch:
    """Finds the jobs that start before another one and compete with it for a worker.

    Once they have run, with what they are charged, it starts at the next decision at which a worker
    that it fits has a free slot.

    Args:
        state: State of the pool.
        job: The job, with its `requirements` as in the state.
        limit: Number of jobs in the order to look at.
    """

    def __init__(self, state: PoolState, job: QueuedJob, limit: int) -> None:
        self.order: Final = InOrder(state)
        self._job = job
        self._left = limit
        self._found: list[QueuedJob] = []

    def run(self) -> Ahead:
        """Looks at jobs until it reaches the job, its limit, or a group that has to be loaded."""
        hold = self.order.find_hold(self._job)
        if hold is not None:
            return Ahead(jobs=(), is_cut=False, hold=hold)
        while self._left:
            other = self.order.next()
            if other is None or other.id == self._job.id:
                return Ahead(jobs=tuple(self._found), is_cut=False, unloaded=self.order.unloaded)
            self._left -= 1
            if self.order.competes(self._job, other):
                self._found.append(other)
        return Ahead(jobs=tuple(self._found), is_cut=True)


def list_candidates(state: PoolState, job: QueuedJob) -> tuple[str, ...]:
    """Returns the IDs of the workers that could take a job if they had a free slot."""
    workers = Placement(state.workers, state.equipped, state.shares.now)
    return tuple(worker.worker_id for worker in workers.candidates(job))


def jobs_ahead(state: PoolState, job: QueuedJob, limit: int) -> Ahead:
    """Returns what `AheadSearch` finds in a state whose groups are loaded."""
    return AheadSearch(state, job, limit).run()


def _list_wanted(order: StartOrder, number: int, spare: int) -> dict[Group, int]:
    return dict.fromkeys(order.list_unloaded(spare), 1) | order.forecast(number)
