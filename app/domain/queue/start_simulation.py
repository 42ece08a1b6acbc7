"""Simulates a pool with the deciding function, to estimate when waiting jobs start. Pure.

Each draw of the simulation draws how long the live jobs still run and how long those run that start
meanwhile. Whenever slots become free, `app.domain.queue.decision.decide` assigns them.
"""

import heapq
import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.domain.queue import usage
from app.domain.queue.decision import PoolState, decide
from app.domain.queue.holds import RunningLimit, RunningLimits
from app.domain.queue.placement import WorkerOffer
from app.domain.queue.runtimes import DrawnRuntimes, RuntimeModel
from app.domain.queue.start_order import ExperimentKey, Group, QueuedJob, Shares, UsageAccount
from palestra.contract.names import PriorityClass

_TOGETHER: Final = 0.02
"""Slots that become free within this part of the simulated time are assigned by one decision."""
_TOGETHER_SECONDS: Final = 1.0

_HORIZON_SECONDS: Final = 366 * 86_400.0
"""A job that ends later counts as one that never ends.

Few observations that differ much allow for runtimes of any length, and usage grows exponentially.
"""

_EARLIEST: Final = 0.1
_LATEST: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuntime:
    """The properties on which the runtime of a job depends."""

    model: RuntimeModel | None
    """`None` if nothing is known: the job then holds its slot until its time limit, or for ever."""
    elapsed: float = 0.0
    """Seconds that it has run already, in all attempts, without what was lost."""
    limit: float | None = None
    """Seconds after which its present or next attempt is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job that holds slots, or is assigned to a worker."""

    worker_id: str
    group: Group
    experiment: ExperimentKey
    devices: int
    runtime: JobRuntime
    slots: int = 1
    """Slots of the worker that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A pool to simulate."""

    state: PoolState
    """Its groups count as complete: what is not loaded does not start."""
    live: Sequence[LiveJob]
    runtimes: Mapping[str, JobRuntime]
    """By ID of a queued job; a job that is missing has no known runtime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInterval:
    """When a job starts: quantiles of the starts in all draws, in seconds from the state's time.

    `inf` where it does not start in the simulation.
    """

    earliest: float
    median: float
    latest: float

    @property
    def is_known(self) -> bool:
        """Whether the job starts in enough of the draws."""
        return math.isfinite(self.latest)


class _End(NamedTuple):
    """A job that holds slots until a time, in seconds from the state's time."""

    at: float
    number: int
    worker_id: str
    group: Group
    experiment: ExperimentKey
    devices: int
    started: float | None
    """`None` if it held its slots from before the simulation."""
    slots: int
    latest: float
    """When it has ended for certain; `inf` without a time limit."""


def estimate_starts(
    simulated: Simulated,
    wanted: Iterable[str],
    *,
    draws: int,
    seed: int,
    is_late: Callable[[], bool] = lambda: False,
) -> dict[str, StartInterval]:
    """Returns the estimated starts of queued jobs.

    Args:
        simulated: The pool.
        wanted: IDs of queued jobs.
        draws: Number of simulations.
        seed: Seed of the random numbers.
        is_late: Asked after each draw but the first eight: whether to end with those made.
    """
    wanted = frozenset(wanted)
    starts: dict[str, list[float]] = {job_id: [] for job_id in wanted}
    for number in range(draws):
        if number >= min(8, draws) and is_late():
            break
        found = _Draw(simulated, random.Random(f"{seed} {number}")).run(wanted)  # noqa: S311
        for job_id, times in starts.items():
            times.append(found.get(job_id, math.inf))
    return {job_id: _interval(sorted(times)) for job_id, times in starts.items()}


def _interval(times: Sequence[float]) -> StartInterval:
    return StartInterval(
        earliest=_quantile(times, _EARLIEST),
        median=_quantile(times, 0.5),
        latest=_quantile(times, _LATEST),
    )


def _quantile(times: Sequence[float], part: float) -> float:
    """Returns a quantile of sorted times, interpolated as in a sample of a distribution."""
    place = part * (len(times) + 1) - 1
    below = min(max(math.floor(place), 0), len(times) - 1)
    above = min(below + 1, len(times) - 1)
    fraction = min(max(place - below, 0.0), 1.0)
    if fraction == 0 or times[above] == times[below]:
        return times[below]
    return times[below] + fraction * (times[above] - times[below])


class _Draw:
    """One simulation with its own random numbers."""

    def __init__(self, simulated: Simulated, source: random.Random) -> None:
        self._state = simulated.state
        self._now = simulated.state.shares.now
        self._runtimes = simulated.runtimes
        self._source = source
        self._parameters: dict[int, DrawnRuntimes] = {}
        self._workers = {one.worker_id: one for one in simulated.state.workers}
        self._heads = {
            group: heads._replace(is_complete=True)
            for group, heads in simulated.state.heads.items()
            if heads.jobs
        }
        self._freed: dict[str, list[float]] = {
            one.worker_id: [0.0] * one.free_slots for one in simulated.state.workers
        }
        """By worker, since when each of its free slots is free."""
        self._usage = _RunningUsage(simulated)
        self._running: dict[ExperimentKey | UsageAccount | str, int] = defaultdict(int)
        self._interactive: dict[str, int] = dict.fromkeys(simulated.state.interactive, 0)
        self._numbers = itertools.count()
        self._ends: list[_End] = []
        self._starts: dict[str, float] = {}
        self._held: dict[str, dict[int, _End]] = {
            one.worker_id: {} for one in simulated.state.workers if one.may_reserve
        }
        """The jobs on workers whose slots may be reserved, by number."""
        for live in simulated.live:
            self._begin(live, None)

    def run(self, wanted: frozenset[str]) -> dict[str, float]:
        """Returns when the wanted jobs start, in seconds; those that never do are missing."""
        left = set(wanted)
        now = 0.0
        while left and self._heads:
            if any(self._freed.values()):
                left.difference_update(self._decide(now))
            if not self._ends or math.isinf(self._ends[0].at):
                break
            first = self._ends[0].at
            until = first + max(_TOGETHER_SECONDS, _TOGETHER * first)
            while self._ends and self._ends[0].at <= until:
                now = max(now, self._ends[0].at)
                self._end(heapq.heappop(self._ends))
        return self._starts

    def _decide(self, now: float) -> list[str]:
        offers = [self._offer(one) for one in self._state.workers]
        state = replace(
            self._state,
            shares=self._usage.shares(self._now + timedelta(seconds=now), now),
            heads=self._heads,
            workers=offers,
            interactive=frozenset(self._interactive),
            limits=self._limits(),
        )
        assigned = decide(state).assignments
        for one in assigned:
            free = self._freed[one.worker_id]
            free.sort()
            began = free[one.slots - 1]
            del free[: one.slots]
            # A slot that was free before a decision is taken by this one.
            self._starts[one.job.id] = began if now - began <= _TOGETHER * now + 1 else now
            self._remove(one.job)
            live = LiveJob(
                worker_id=one.worker_id,
                group=one.job.group,
                experiment=one.job.experiment,
                devices=one.job.devices,
                runtime=self._runtimes.get(one.job.id, JobRuntime(model=None)),
                slots=one.slots,
            )
            self._begin(live, self._starts[one.job.id])
        return [one.job.id for one in assigned]

    def _offer(self, worker: WorkerOffer) -> WorkerOffer:
        """Returns a worker with the slots that are free or busy in the simulation."""
        free, held = len(self._freed[worker.worker_id]), self._held.get(worker.worker_id)
        if held is None:
            return worker if free == worker.free_slots else replace(worker, free_slots=free)
        ends = (
            None if math.isinf(end.latest) else self._now + timedelta(seconds=end.latest)
            for end in held.values()
            for _ in range(end.slots)
        )
        return replace(worker, free_slots=free, busy_until=tuple(ends))

    def _remove(self, job: QueuedJob) -> None:
        heads = self._heads[job.group]
        jobs = [one for one in heads.jobs if one.id != job.id]
        if jobs:
            self._heads[job.group] = heads._replace(jobs=jobs)
        else:
            del self._heads[job.group]

    def _begin(self, job: LiveJob, started: float | None) -> None:
        begin, limit = started or 0.0, job.runtime.limit
        at = begin + self._draw(job.runtime)
        if at > _HORIZON_SECONDS:
            at = math.inf
        end = _End(
            at=at,
            number=next(self._numbers),
            worker_id=job.worker_id,
            group=job.group,
            experiment=job.experiment,
            devices=job.devices,
            started=started,
            slots=job.slots,
            latest=math.inf if limit is None else begin + max(0.0, limit),
        )
        heapq.heappush(self._ends, end)
        if end.worker_id in self._held:
            self._held[end.worker_id][end.number] = end
        if started is not None:
            self._usage.begin(end)
            self._count(end, 1)
        if job.group.priority_class is PriorityClass.INTERACTIVE:
            users = self._interactive
            users[job.group.user_id] = users.get(job.group.user_id, 0) + 1

    def _end(self, end: _End) -> None:
        self._usage.end(end)
        self._count(end, -1)
        if end.worker_id in self._freed:
            self._freed[end.worker_id] += [end.at] * end.slots
        if end.worker_id in self._held:
            del self._held[end.worker_id][end.number]
        if end.group.priority_class is PriorityClass.INTERACTIVE:
            user_id = end.group.user_id
            self._interactive[user_id] -= 1
            if self._interactive[user_id] <= 0:
                del self._interactive[user_id]

    def _count(self, end: _End, number: int) -> None:
        for key in (end.experiment, end.group.account, end.group.project_id):
            self._running[key] += number

    def _draw(self, runtime: JobRuntime) -> float:
        """Returns for how many seconds the job holds its slots from now on."""
        limit = math.inf if runtime.limit is None else max(0.0, runtime.limit)
        model = runtime.model
        if model is None:
            return limit
        # Jobs of one kind share the model, and the parameters that were drawn for it.
        drawn = self._parameters.get(id(model))
        if drawn is None:
            drawn = self._parameters[id(model)] = model.draw_parameters(self._source)
        return min(limit, max(0.0, drawn.draw(self._source, runtime.elapsed) - runtime.elapsed))

    def _limits(self) -> RunningLimits:
        limits, running = self._state.limits, self._running
        if not (limits.experiments or limits.accounts or limits.projects):
            return limits

        def moved(known: RunningLimit, key: ExperimentKey | UsageAccount | str) -> RunningLimit:
            return known._replace(running=known.running + running.get(key, 0))

        return replace(
            limits,
            experiments={key: moved(one, key) for key, one in limits.experiments.items()},
            accounts={key: moved(one, key) for key, one in limits.accounts.items()},
            projects={key: moved(one, key) for key, one in limits.projects.items()},
        )


@dataclass(slots=True)
class _Held:
    """Devices that an account holds, and the sum of the weights from which they are charged."""

    devices: float = 0.0
    weights: float = 0.0


class _RunningUsage:
    """The usage of the accounts of a pool as jobs start and end.

    A running job is charged from a quantum before its start, an ended one for its exact interval.
    """

    def __init__(self, simulated: Simulated) -> None:
        self._state = simulated.state.shares
        self._booked = dict(simulated.state.shares.usage)
        self._held: dict[UsageAccount, _Held] = {}
        now = usage.weight(self._state.now)
        for live in simulated.live:
            # What was used until now is part of the state's usage.
            held = self._held.setdefault(live.group.account, _Held())
            held.devices += live.devices
            held.weights += live.devices * now

    def begin(self, end: _End) -> None:
        """Charges a job that starts."""
        held = self._held.setdefault(end.group.account, _Held())
        held.devices += end.devices
        held.weights += end.devices * self._charged_from(end)

    def end(self, end: _End) -> None:
        """Adds the usage of a job to its account."""
        account = end.group.account
        held = self._held[account]
        charged = self._charged_from(end)
        held.devices -= end.devices
        held.weights -= end.devices * charged
        used = end.devices * (self._weight(end.at) - charged)
        # The quantum was an advance: the interval of the attempt does not have it.
        used -= end.devices * usage.quantum(1, self._moment(end.at)) / usage.SECONDS_PER_WEIGHT
        booked = self._booked.get(account, 0.0) + used * usage.SECONDS_PER_WEIGHT
        self._booked[account] = max(0.0, booked)

    def shares(self, moment: datetime, seconds: float) -> Shares:
        """Returns shares and usage at a time."""
        weight = self._weight(seconds)
        used = dict(self._booked)
        for account, held in self._held.items():
            if held.devices > 0:
                growing = held.devices * weight - held.weights
                used[account] = used.get(account, 0.0) + growing * usage.SECONDS_PER_WEIGHT
        return replace(self._state, now=moment, usage=used)

    def _charged_from(self, end: _End) -> float:
        if end.started is None:
            return usage.weight(self._state.now)
        return self._weight(end.started - usage.QUANTUM_SECONDS)

    def _weight(self, seconds: float) -> float:
        return usage.weight(self._moment(seconds))

    def _moment(self, seconds: float) -> datetime:
        return self._state.now + timedelta(seconds=seconds)
