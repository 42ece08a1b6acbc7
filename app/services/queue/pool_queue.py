"""Decisions on the queue of a pool: what starts now, and the place of a job in it.

Of each person's queued jobs only the first ones are read, and more only when the decision needs
them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db import clock
from app.db.engine import Session
from app.db.repositories import assignments, queue_groups
from app.db.repositories import start_order as rows
from app.db.repositories.assignments import WorkerSlots
from app.db.repositories.start_order import LoadedJob, Requirement
from app.domain.queue import decision, usage
from app.domain.queue.decision import Ahead, Decision, PoolState
from app.domain.queue.holds import Hold, HoldReason, RunningLimits
from app.domain.queue.start_estimates import add_jobs
from app.domain.queue.start_order import Group, Heads, QueuedJob, Shares, sum_by_project
from app.services.queue import running_limits
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.running_limits import LimitsOfPool
from palestra.contract.names import PriorityClass
from palestra.contract.queue import QueueTerms

_FIRST_JOBS: Final = 4
"""Jobs of a group that are read at first; each further read takes eight times as many."""
_GROWTH: Final = 8
_SPARE_GROUPS: Final = 4
"""Groups beside those that the free slots need, since the first jobs of some may not fit."""
_MOST_GROUPS: Final = 64
_HOLDS_ALIKE: Final = {
    HoldReason.SLOTS_BUSY,
    HoldReason.NO_FITTING_WORKER,
    HoldReason.NOT_FREE_LONG_ENOUGH,
}
"""Reasons that hold other jobs with the same requirement as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDecision:
    """The decision on a pool, its time, and the groups that were found empty."""

    decision: Decision
    now: datetime
    """The database's time at which it was made."""
    empty_groups: tuple[Group, ...]
    """Groups that were read and have no queued job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a queued job in its pool's queue."""

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
        equipped: Finds the workers that fit a job; `None` if which worker a job starts on
            does not matter.
    """

    def __init__(
        self, session: Session, pool: str, equipped: EquippedWorkers | None = None
    ) -> None:
        self._session = session
        self._pool = pool
        self._equipped = equipped
        self.loaded: dict[Group, list[LoadedJob]] = {}
        self._limits: dict[Group, int] = {}
        self._groups: Sequence[Group] = ()
        self._waiting_since: Mapping[Group, datetime] = {}
        self._workers: Sequence[WorkerSlots] = ()
        self._shares = Shares(now=usage.LANDMARK, shares={}, usage={})
        self._interactive: frozenset[str] = frozenset()
        self._running = LimitsOfPool(RunningLimits())

    async def decide(self) -> PoolDecision:
        """Returns the jobs that start now on the free slots."""
        await self._read_pool()
        excluded: set[Requirement] = set()
        free = sum(worker.free_slots for worker in self._workers)
        if free and self._groups:
            await self._load(self._next_groups(self._groups[0], free + _SPARE_GROUPS), ())
        while True:
            state = await self._state()
            found = decision.decide(state)
            if found.unloaded is None:
                return PoolDecision(
                    decision=found,
                    now=self._shares.now,
                    empty_groups=await self._find_empty_groups(),
                )
            excluded |= self._blocked(found.holds)
            missing = free - len(found.assignments) + _SPARE_GROUPS
            await self._load(self._next_groups(found.unloaded, missing), excluded)

    async def first_jobs(self, limit: int) -> list[QueuedJob]:
        """Returns the queued jobs in the order in which they would start, at most `limit`."""
        return (await self.read_first_jobs(limit))[1]

    async def read_first_jobs(
        self, limit: int, added: Sequence[LoadedJob] = ()
    ) -> tuple[PoolState, list[QueuedJob]]:
        """Returns the state of the pool, and the jobs in the order in which they would start.

        Args:
            limit: Most jobs to return; the state has about twice as many.
            added: Further jobs that count as queued, though they are not stored.
        """
        await self._read_pool()
        if self._groups:
            # Most of what a list of all places needs is read at once.
            each = max(_FIRST_JOBS, 2 * limit // len(self._groups))
            await self._load(self._groups[:limit], (), each)
        while True:
            state = add_jobs(await self._state(*added), [one.job for one in added])
            jobs: list[QueuedJob] = []
            order = decision.InOrder(state)
            while len(jobs) < limit and (job := order.next()) is not None:
                jobs.append(job)
            if order.unloaded is None or len(jobs) == limit:
                return state, jobs
            await self._load(self._next_groups(order.unloaded, _MOST_GROUPS), ())

    async def find_place(self, job_id: str, limit: int) -> Place | None:
        """Returns the place of a queued job.

        `None` if it is not queued or the pool does not admit its project.

        Args:
            job_id: The job.
            limit: Number of jobs in the order to look at.
        """
        await self._read_pool()
        own = await rows.load_job(self._session, job_id)
        if own is None or own.job.group.project_id not in self._shares.shares:
            return None
        while True:
            state = await self._state(own)
            ahead = decision.jobs_ahead(state, own.job, limit)
            if ahead.unloaded is None:
                break
            await self._load(self._next_groups(ahead.unloaded, _MOST_GROUPS), ())
        slots, free_slots = self.count_slots(state, own.job)
        return Place(ahead=ahead, terms=self._terms(own.job), slots=slots, free_slots=free_slots)

    def count_slots(self, state: PoolState, job: QueuedJob) -> tuple[int, int]:
        """Returns the numbers of all and of free slots of the workers that could take a job."""
        usable = set(decision.list_candidates(state, job))
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
        now = await clock.now(session)
        shares = await rows.load_shares(session, pool)
        used = await rows.load_usage(session, pool)
        live = await rows.load_live_usage(session, pool)
        for one in live:
            growing = one.devices * usage.weight(now) - one.weight
            used[one.account] = used.get(one.account, 0.0) + growing * usage.SECONDS_PER_WEIGHT
        self._shares = Shares(now=now, shares=shares, usage=used)
        self._interactive = frozenset(
            one.account.user_id for one in live if one.priority_class is PriorityClass.INTERACTIVE
        )
        self._waiting_since = await queue_groups.list_groups(session, pool)
        self._groups = self._in_likely_order(
            [group for group in self._waiting_since if group.project_id in shares]
        )
        self._workers = await assignments.list_worker_slots(session, [pool])
        accounts = {group.account for group in self._groups}
        self._running = await running_limits.read_pool(session, pool, now, accounts)
        self.loaded, self._limits = {}, {}

    def _in_likely_order(self, groups: Collection[Group]) -> list[Group]:
        """Sorts groups by their place if each had one job; the order decides only what is read."""
        used, shares = self._shares.usage, self._shares.shares
        by_project = sum_by_project(used)
        classes = list(PriorityClass)
        return sorted(
            groups,
            key=lambda group: (
                classes.index(group.priority_class),
                by_project.get(group.project_id, 0.0) / shares[group.project_id],
                used.get(group.account, 0.0),
                self._waiting_since[group],
            ),
        )

    async def _state(self, *others: LoadedJob) -> PoolState:
        """Returns the state as far as it is loaded; `others` are looked up but not queued."""
        loaded = [*others, *(one for jobs in self.loaded.values() for one in jobs)]
        await self._running.add_experiments(self._session, [one.job.experiment for one in loaded])
        return PoolState(
            shares=self._shares,
            heads={
                group: Heads(
                    jobs=[one.job for one in self.loaded.get(group, ())],
                    is_complete=len(self.loaded.get(group, ())) < self._limits.get(group, 0),
                    waiting_since=self._waiting_since[group],
                )
                for group in self._groups
            },
            workers=self._workers,
            equipped={}
            if self._equipped is None
            else await self._equipped.find(self._session, loaded, self._workers),
            interactive=self._interactive,
            limits=self._running.limits,
        )

    def _next_groups(self, first: Group, number: int) -> list[Group]:
        """Returns the group of which more jobs are needed, and unread ones that may be next."""
        unread = [group for group in self._groups if group not in self._limits and group != first]
        return [first, *unread[: min(number, _MOST_GROUPS) - 1]]

    async def _load(
        self, groups: Sequence[Group], excluded: Collection[Requirement], limit: int = 0
    ) -> None:
        """Reads the first jobs of groups: `limit` of each, by default more than before."""
        read = max(self._limits.get(group, 0) for group in groups)
        limit = limit or read * _GROWTH or _FIRST_JOBS
        self.loaded |= await rows.load_heads(self._session, self._pool, groups, limit, excluded)
        self._limits |= dict.fromkeys(groups, limit)

    def _blocked(self, holds: Mapping[str, Hold]) -> set[Requirement]:
        return {
            one.requirement
            for jobs in self.loaded.values()
            for one in jobs
            if (hold := holds.get(one.job.id)) and hold.reason in _HOLDS_ALIKE
        }

    async def _find_empty_groups(self) -> tuple[Group, ...]:
        without_heads = [group for group, jobs in self.loaded.items() if not jobs]
        return await queue_groups.filter_empty_groups(self._session, self._pool, without_heads)
