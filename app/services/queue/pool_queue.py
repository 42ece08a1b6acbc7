"""Decisions on the queue of a pool: what starts now, and the place of a job in it.

Of each person's queued jobs only the first ones are read, and more only when the decision needs
them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from app.db.engine import Session
from app.db.repositories import assignments, busy_slots, pool_reads, queue_groups
from app.db.repositories import start_order as rows
from app.db.repositories.assignments import WorkerSlots
from app.db.repositories.start_order import LoadedJob, Requirement
from app.domain.queue import decision, usage
from app.domain.queue.decision import Ahead, Decider, Decision, InOrder, LoadedHeads, PoolState
from app.domain.queue.holds import Hold, HoldReason, RunningLimits
from app.domain.queue.placement import Equipped
from app.domain.queue.start_estimates import add_jobs
from app.domain.queue.start_order import (
    ExperimentKey,
    Group,
    Heads,
    QueuedJob,
    Shares,
    sum_by_project,
)
from app.services.queue import running_limits
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.running_limits import LimitsOfPool
from palestra.contract.names import PriorityClass
from palestra.contract.queue import QueueTerms

_FIRST_JOBS: Final = 4
"""Jobs of a group that are read at least; each further read takes eight times as many."""
_GROWTH: Final = 8
_SPARE_GROUPS: Final = 4
"""Groups that are read beside those that the free slots need, since the first jobs of some may not
start; each further read takes twice as many."""
_MAX_SPARE_GROUPS: Final = 64
_HOLDS_ALIKE: Final = {
    HoldReason.SLOTS_BUSY,
    HoldReason.NO_FITTING_WORKER,
    HoldReason.NOT_FREE_LONG_ENOUGH,
    HoldReason.EXPERIMENT_LIMIT,
    HoldReason.RESERVED,
}
"""Reasons that hold other jobs with the same requirement as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDecision:
    """The decision on a pool."""

    decision: Decision
    now: datetime
    """The database's time at which it was made."""
    empty_groups: tuple[Group, ...]
    """Groups that were read and have no queued job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a queued job stands in its pool's queue."""

    ahead: Ahead
    terms: QueueTerms
    slots: int
    """Slots of the workers that could take it."""
    free_slots: int


class PoolQueue:
    """The queue of one pool, read in one transaction.

    Args:
        session: A reading session.
        pool: Name of the pool.
        equipped: What is known of the workers' equipment; `None` if which worker a job starts on
            does not matter.
        started: Number of jobs by experiment that a decision on another pool starts, which the
            limits of experiments count though they are not stored yet.
    """

    def __init__(
        self,
        session: Session,
        pool: str,
        equipped: EquippedWorkers | None = None,
        started: Mapping[ExperimentKey, int] | None = None,
    ) -> None:
        self._session = session
        self._pool = pool
        self._equipped = equipped
        self._started = started
        self.loaded: dict[Group, list[LoadedJob]] = {}
        self._limits: dict[Group, int] = {}
        self._reads = 0
        self._groups: Mapping[Group, datetime] = {}
        """The groups, with since when they wait."""
        self._workers: Sequence[WorkerSlots] = ()
        self._shares = Shares(now=usage.LANDMARK, shares={}, usage={})
        self._interactive: frozenset[str] = frozenset()
        self._running = LimitsOfPool(RunningLimits())
        self._busy_until: dict[str, list[datetime | None]] = {}

    async def decide(self) -> PoolDecision:
        """Returns the jobs that start now on the free slots."""
        await self._read_pool()
        _, found = await self._run(await self._state())
        return PoolDecision(
            decision=found,
            now=self._shares.now,
            empty_groups=await self._find_empty_groups(),
        )

    async def find_reservation(self, job_id: str) -> Hold | None:
        """Returns why a queued job waits if slots are kept for it, or kept from it for another.

        That takes a decision, which is made if jobs of the pool may take several slots.
        """
        await self._read_pool()
        own = await rows.load_job(self._session, job_id)
        if own is None or not any(one.may_reserve for one in self._workers):
            return None
        decider, found = await self._run(await self._state(own))
        if any(one.job.id == job_id for one in found.assignments):
            return None
        hold = decider.find_hold(own.job)
        return None if hold is None or hold.worker_id is None else hold

    async def _run(self, state: PoolState) -> tuple[Decider, Decision]:
        decider = Decider(state)
        excluded: set[Requirement] = set()
        while (found := decider.run()).unloaded is not None:
            excluded |= self._blocked(found.holds)
            wanted = decider.list_wanted(self._count_spare_groups())
            decider.load(await self._load(wanted, found.unloaded, excluded))
        return decider, found

    async def first_jobs(self, limit: int) -> list[QueuedJob]:
        """Returns the queued jobs in the order in which they would start, at most `limit`."""
        return (await self.read_first_jobs(limit))[1]

    async def read_first_jobs(
        self, limit: int, added: Sequence[LoadedJob] = ()
    ) -> tuple[PoolState, list[QueuedJob]]:
        """Returns the state of the pool, and the jobs in the order in which they would start.

        Args:
            limit: Most jobs to return; the state has some more.
            added: Further jobs that count as queued, though they are not stored.
        """
        await self._read_pool()
        while True:
            state = add_jobs(await self._state(*added), [one.job for one in added])
            order = decision.InOrder(state)
            jobs: list[QueuedJob] = []
            while len(jobs) < limit and (job := order.next()) is not None:
                jobs.append(job)
            if order.unloaded is None or len(jobs) == limit:
                return state, jobs
            wanted = order.list_wanted(limit - len(jobs), self._count_spare_groups())
            # Groups of added jobs alone have no stored jobs to load.
            stored = {group: number for group, number in wanted.items() if group in self._groups}
            await self._load(stored, order.unloaded)

    async def find_place(self, job_id: str, limit: int) -> Place | None:
        """Returns where a queued job stands.

        `None` if it is not queued or the pool does not admit its project.

        Args:
            job_id: The job.
            limit: Number of jobs in the order to look at.
        """
        await self._read_pool()
        own = await rows.load_job(self._session, job_id)
        if own is None or own.job.group.project_id not in self._shares.shares:
            return None
        search = decision.AheadSearch(await self._state(own), own.job, limit)
        ahead = search.run()
        while await self._load_for(search.order, limit):
            ahead = search.run()
        slots, free_slots = self._count_slots(search.order.list_candidates(own.job))
        return Place(ahead=ahead, terms=self._terms(own.job), slots=slots, free_slots=free_slots)

    def count_slots(self, state: PoolState, job: QueuedJob) -> tuple[int, int]:
        """Returns the numbers of all and of free slots of the workers that could take a job."""
        return self._count_slots(decision.list_candidates(state, job))

    def _count_slots(self, usable: Collection[str]) -> tuple[int, int]:
        workers = [worker for worker in self._workers if worker.worker_id in usable]
        return sum(one.slots for one in workers), sum(one.free_slots for one in workers)

    def _terms(self, job: QueuedJob) -> QueueTerms:
        shares, account = self._shares, job.group.account
        of_project = sum_by_project(shares.usage).get(account.project_id, 0.0)
        return QueueTerms(
            priority_class=job.group.priority_class,
            project_usage=usage.decayed_seconds(of_project, shares.now),
            project_share=shares.shares[account.project_id] / sum(shares.shares.values()),
            user_usage=usage.decayed_seconds(shares.usage.get(account, 0.0), shares.now),
            priority=job.priority,
            own_place=job.own_place,
            seed_index=job.seed_index,
            queued_at=job.queued_at,
        )

    async def _read_pool(self) -> None:
        session, pool = self._session, self._pool
        found = await pool_reads.read_pool(session, pool)
        now, used = found.now, found.used
        weight = usage.weight(now)
        for one in found.live:
            growing = one.devices * weight - one.weight
            used[one.account] = used.get(one.account, 0.0) + growing * usage.SECONDS_PER_WEIGHT
        self._shares = Shares(now=now, shares=found.shares, usage=used)
        self._interactive = frozenset(
            one.account.user_id
            for one in found.live
            if one.priority_class is PriorityClass.INTERACTIVE
        )
        self._groups = found.groups
        self._workers = await assignments.list_worker_slots(
            session, [pool], has_windows=found.has_windows
        )
        self._running = LimitsOfPool(RunningLimits(), self._started)
        if found.has_quotas:
            accounts = {group.account for group in self._groups}
            self._running = await running_limits.read_pool(
                session, pool, now, accounts, self._started
            )
        self.loaded, self._limits, self._reads, self._busy_until = {}, {}, 0, {}

    async def _state(self, *others: LoadedJob) -> PoolState:
        """Returns the state as far as it is loaded; `others` are looked up but not queued."""
        loaded = [*others, *(one for jobs in self.loaded.values() for one in jobs)]
        found = await self._build_heads(self._groups, loaded)
        return PoolState(
            shares=self._shares,
            heads=found.heads,
            workers=self._workers,
            equipped=found.equipped,
            interactive=self._interactive,
            limits=self._running.limits,
        )

    async def _build_heads(
        self, groups: Collection[Group], jobs: Collection[LoadedJob]
    ) -> LoadedHeads:
        """Returns the jobs of some groups, with what is known of the needs of some jobs."""
        await self._running.add_experiments(self._session, [one.job.experiment for one in jobs])
        experiments = self._running.limits.experiments
        equipped: Equipped = {}
        if self._equipped is not None and jobs:
            equipped = await self._equipped.find(self._session, jobs, self._workers)
        if any(one.job.gpus > 1 for one in jobs):
            await self._read_busy_until()
        heads = {}
        for group in groups:
            found = self.loaded.get(group)
            if found is None:
                heads[group] = Heads(waiting_since=self._groups[group])
                continue
            is_complete = len(found) < self._limits[group]
            heads[group] = Heads([one.job for one in found], is_complete, self._groups[group])
        return LoadedHeads(
            heads=heads,
            equipped=equipped,
            experiments=experiments,
            busy_until=self._busy_until,
        )

    async def _read_busy_until(self) -> None:
        """Reads once until when slots are busy that jobs with several slots may reserve."""
        if self._busy_until or not any(one.may_reserve for one in self._workers):
            return
        reservable = [one.worker_id for one in self._workers if one.may_reserve]
        self._busy_until = await busy_slots.load_busy_until(self._session, reservable)
        self._workers = [
            replace(one, busy_until=self._busy_until.get(one.worker_id, ()))
            for one in self._workers
        ]

    async def _load_for(self, order: InOrder, number: int) -> bool:
        """Loads what ended an order, and the groups of its next jobs; `False` if nothing did."""
        if order.unloaded is None:
            return False
        wanted = order.list_wanted(number, self._count_spare_groups())
        order.load(await self._load(wanted, order.unloaded))
        return True

    def _count_spare_groups(self) -> int:
        self._reads += 1
        return min(_SPARE_GROUPS << (self._reads - 1), _MAX_SPARE_GROUPS)

    async def _load(
        self, wanted: Mapping[Group, int], first: Group, excluded: Collection[Requirement] = ()
    ) -> LoadedHeads:
        """Reads the first jobs of some groups, more than before of the first one.

        Args:
            wanted: Groups with the number of jobs that may start; what was read once is not read
                again for it.
            first: The group without which the order ends.
            excluded: Requirements of jobs that are left out.
        """
        limits: dict[int, list[Group]] = {}
        for group, number in {first: 1, **wanted}.items():
            if group == first or group not in self._limits:
                limit = self._limits.get(group, 0) * _GROWTH or _FIRST_JOBS
                while limit < number:
                    limit *= _GROWTH
                limits.setdefault(limit, []).append(group)
        read: dict[Group, list[LoadedJob]] = {}
        for limit, groups in limits.items():
            read |= await rows.load_heads(self._session, self._pool, groups, limit, excluded)
            self._limits |= dict.fromkeys(groups, limit)
        self.loaded |= read
        return await self._build_heads(read, [one for found in read.values() for one in found])

    def _blocked(self, holds: Mapping[str, Hold]) -> set[Requirement]:
        return {
            one.requirement
            for jobs in self.loaded.values()
            for one in jobs
            if (hold := holds.get(one.job.id)) and hold.reason in _HOLDS_ALIKE
        }

    async def _find_empty_groups(self) -> tuple[Group, ...]:
        """Returns which groups have no queued job, of those of which no job was found.

        Also of those whose project the pool does not admit, of which no job is ever read.
        """
        suspected = [group for group, jobs in self.loaded.items() if not jobs]
        suspected += [one for one in self._groups if one.project_id not in self._shares.shares]
        return await queue_groups.filter_empty_groups(self._session, self._pool, suspected)
