"""Decisions on drawn queues, against a naive form of the same rules."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.queue import usage
from app.domain.queue.decision import Decider, LoadedHeads, PoolState, decide, jobs_ahead
from app.domain.queue.holds import Hold, HoldReason, RunningLimit, RunningLimits
from app.domain.queue.placement import WorkerOffer
from app.domain.queue.start_order import ExperimentKey, QueuedJob, UsageAccount
from palestra.contract.names import PriorityClass
from tests.support.queue_states import NOW, make_job, make_state, make_worker
from workers.host.slots import gpus_of_slots

JOBS = st.lists(
    st.builds(
        make_job,
        st.integers(0, 999).map("{:03}".format),
        st.sampled_from(["ada", "bob", "eve"]),
        project=st.sampled_from(["robots", "games", "arms"]),
        priority_class=st.sampled_from(list(PriorityClass)),
        priority=st.integers(-1, 1),
        seed_index=st.integers(0, 2),
        age=st.integers(0, 3).map(float),
        gpus=st.sampled_from([0, 0, 1, 2, 4]),
        experiment=st.sampled_from(["exp_1", "exp_2"]),
        wall_seconds=st.sampled_from([None, 60, 600]),
    ),
    max_size=25,
    unique_by=lambda job: job.id,
)
USAGE = st.dictionaries(
    st.tuples(st.sampled_from(["robots", "games", "arms"]), st.sampled_from(["ada", "bob", "eve"])),
    st.sampled_from([0.0, 30.0, 60.0, 90.0, 1000.0]),
)
WORKERS = st.lists(
    st.builds(
        make_worker,
        st.sampled_from(["w1", "w2", "w3", "w4"]),
        st.integers(0, 4),
        st.sampled_from([0, 1, 2, 4]),
        st.sampled_from([None, None, 0.0, 300.0, 900.0]),
        busy=st.lists(st.sampled_from([None, 100.0, 200.0, 700.0]), max_size=4),
        takes_several_slots=st.booleans(),
    ),
    unique_by=lambda worker: worker.worker_id,
)
SHARES = st.fixed_dictionaries(
    {name: st.sampled_from([0.5, 1.0, 3.0]) for name in ("robots", "games", "arms")}
)


RUNNING = st.builds(RunningLimit, st.integers(0, 2), st.integers(0, 3))
ACCOUNTS = st.builds(
    UsageAccount, st.sampled_from(["robots", "games"]), st.sampled_from(["ada", "bob"])
)
LIMITS = st.builds(
    RunningLimits,
    experiments=st.dictionaries(
        st.builds(
            ExperimentKey, st.sampled_from(["robots", "games"]), st.sampled_from(["exp_1", "exp_2"])
        ),
        RUNNING,
    ),
    accounts=st.dictionaries(ACCOUNTS, RUNNING, max_size=2),
    projects=st.dictionaries(st.sampled_from(["robots", "games"]), RUNNING, max_size=1),
    exhausted_accounts=st.frozensets(ACCOUNTS, max_size=1),
    exhausted_projects=st.frozensets(st.just("arms"), max_size=1),
)


def is_permitted(job: QueuedJob, limits: RunningLimits, started: Sequence[QueuedJob]) -> bool:
    """Returns whether the limits permit one more job beside those that were started."""
    group = job.group
    if group.account in limits.exhausted_accounts or group.project_id in limits.exhausted_projects:
        return False
    counted = [
        (
            limits.experiments.get(job.experiment),
            sum(one.experiment == job.experiment for one in started),
        ),
        (
            limits.accounts.get(group.account),
            sum(one.group.account == group.account for one in started),
        ),
        (
            limits.projects.get(group.project_id),
            sum(one.group.project_id == group.project_id for one in started),
        ),
    ]
    return all(limit is None or limit.running + count < limit.most for limit, count in counted)


class NaivePlaces:
    """Slots of workers, each with the time at which it is free; `inf` if that is not known."""

    def __init__(self, workers: Sequence[WorkerOffer]) -> None:
        self.workers = sorted(workers, key=lambda one: (one.gpus, one.worker_id))
        self.slots = {
            worker.worker_id: [0.0] * worker.free_slots
            + [math.inf if end is None else seconds_from_now(end) for end in worker.busy_until]
            for worker in workers
        }
        self.reserved: dict[str, tuple[float, int]] = {}
        """Start of the reservation, and the slots that are not needed then."""

    def place(self, job: QueuedJob) -> bool:
        """Starts a job if it can; reserves slots for one that needs several."""
        length = math.inf if job.wall_seconds is None else job.wall_seconds + 120.0
        fitting = [one for one in self.workers if one.gpus >= job.gpus]
        usable = [one for one in fitting if ends_in_time(one, 0.0, length)]
        able = [one for one in usable if self.may_start(one, count_slots_naively(one, job), length)]
        if able:
            chosen = min(able, key=lambda one: (one.gpus, -self.free(one), one.worker_id))
            needed = count_slots_naively(chosen, job)
            slots = self.slots[chosen.worker_id]
            for _ in range(needed):
                slots[slots.index(0.0)] = length
            if chosen.worker_id in self.reserved:
                start, spare = self.reserved[chosen.worker_id]
                taken = 0 if length <= start < math.inf else needed
                self.reserved[chosen.worker_id] = (start, spare - taken)
            return True
        if not any(self.free(one) >= count_slots_naively(one, job) for one in usable):
            self.reserve(job, usable, length)
        return False

    def free(self, worker: WorkerOffer) -> int:
        return self.slots[worker.worker_id].count(0.0)

    def may_start(self, worker: WorkerOffer, needed: int, length: float) -> bool:
        start, spare = self.reserved.get(worker.worker_id, (math.inf, 99))
        return self.free(worker) >= needed and (length <= start < math.inf or needed <= spare)

    def reserve(self, job: QueuedJob, usable: Sequence[WorkerOffer], length: float) -> None:
        if any(
            one.worker_id in self.reserved or count_slots_naively(one, job) == 1 for one in usable
        ):
            return
        best: tuple[float, int, int] | None = None
        for number, worker in enumerate(usable):
            needed = count_slots_naively(worker, job)
            start = sorted([*self.slots[worker.worker_id], *[math.inf] * 9])[needed - 1]
            if ends_in_time(worker, start, length):
                one = (start, -self.free(worker), number)
                best = one if best is None else min(best, one)
        if best is not None:
            worker = usable[best[2]]
            needed = count_slots_naively(worker, job)
            free_then = sum(end <= best[0] < math.inf for end in self.slots[worker.worker_id])
            self.reserved[worker.worker_id] = (best[0], max(0, free_then - needed))


def seconds_from_now(moment: datetime) -> float:
    return (moment - NOW).total_seconds()


def ends_in_time(worker: WorkerOffer, start: float, length: float) -> bool:
    return worker.free_until is None or start + length <= seconds_from_now(worker.free_until)


def count_slots_naively(worker: WorkerOffer, job: QueuedJob) -> int:
    """Returns the smallest number of slots of which any choice has the GPUs of a job."""
    if job.gpus == 0 or not worker.takes_several_slots:
        return 1
    gpus = tuple(range(worker.gpus))
    by_slot = [set(gpus_of_slots([slot], worker.slots, gpus)) for slot in range(worker.slots)]
    return next(
        (
            number
            for number in range(1, worker.slots + 1)
            if all(
                len(set().union(*chosen)) >= job.gpus for chosen in combinations(by_slot, number)
            )
        ),
        worker.slots,
    )


def decide_naively(state: PoolState) -> list[str]:
    """Sorts all waiting jobs anew for every job that is looked at."""
    used = dict(state.shares.usage)
    waiting = [job for heads in state.heads.values() for job in heads.jobs]
    places = NaivePlaces(state.workers)
    interactive = set(state.interactive)
    started: list[QueuedJob] = []

    def rank(job: QueuedJob) -> tuple[object, ...]:
        project = sum(
            seconds
            for account, seconds in sorted(used.items())
            if account.project_id == job.group.project_id
        )
        return (
            list(PriorityClass).index(job.group.priority_class),
            project / state.shares.shares[job.group.project_id],
            job.group.project_id,
            used.get(job.group.account, 0.0),
            job.group.user_id,
            job.own_order,
        )

    while waiting:
        job = min(waiting, key=rank)
        waiting.remove(job)
        is_second = (
            job.group.priority_class is PriorityClass.INTERACTIVE
            and job.group.user_id in interactive
        )
        if is_second or not is_permitted(job, state.limits, started) or not places.place(job):
            continue
        account = job.group.account
        used[account] = used.get(account, 0.0) + usage.quantum(job.devices, NOW)
        if job.group.priority_class is PriorityClass.INTERACTIVE:
            interactive.add(job.group.user_id)
        started.append(job)
    return [one.id for one in started]


@settings(max_examples=200)
@given(JOBS, WORKERS, USAGE, SHARES, LIMITS)
def test_decisions_equal_the_naive_ones(
    jobs: list[QueuedJob],
    workers: list[WorkerOffer],
    used: dict[tuple[str, str], float],
    shares: dict[str, float],
    limits: RunningLimits,
) -> None:
    state = make_state(jobs, workers, used, shares, limits=limits)
    assert [one.job.id for one in decide(state).assignments] == decide_naively(state)


@settings(max_examples=100)
@given(JOBS, WORKERS, USAGE, SHARES, LIMITS)
def test_a_job_starts_next_once_the_jobs_ahead_of_it_have_run(
    jobs: list[QueuedJob],
    workers: list[WorkerOffer],
    used: dict[tuple[str, str], float],
    shares: dict[str, float],
    limits: RunningLimits,
) -> None:
    state = make_state(jobs, workers, used, shares, limits=limits)
    held = decide(state).holds
    for job in jobs:
        if held.get(job.id) != Hold(HoldReason.SLOTS_BUSY):
            continue
        ahead = {other.id: other for other in jobs_ahead(state, job, 100).jobs}
        rest = [other for other in jobs if other.id not in ahead]
        # They have run: what they were charged stays.
        charged = dict(used)
        for other in ahead.values():
            account = (other.group.project_id, other.group.user_id)
            charged[account] = charged.get(account, 0.0) + usage.QUANTUM_SECONDS * other.devices
        roomy = [
            replace(worker, free_slots=worker.count_slots(job.gpus))
            if worker.gpus >= job.gpus
            else worker
            for worker in workers
        ]
        decision = decide(make_state(rest, roomy, charged, shares, limits=limits))
        assert job.id in [one.job.id for one in decision.assignments]


@settings(max_examples=100)
@given(JOBS, WORKERS, USAGE, SHARES, LIMITS, st.integers(1, 3))
def test_a_decision_that_loads_jobs_step_by_step_equals_one_on_all_jobs(
    jobs: list[QueuedJob],
    workers: list[WorkerOffer],
    used: dict[tuple[str, str], float],
    shares: dict[str, float],
    limits: RunningLimits,
    step: int,
) -> None:
    state = make_state(jobs, workers, used, shares, limits=limits)
    unloaded = {
        group: heads._replace(jobs=(), is_complete=False) for group, heads in state.heads.items()
    }
    decider, loaded = Decider(replace(state, heads=unloaded)), dict.fromkeys(state.heads, 0)
    while (found := decider.run()).unloaded is not None:
        wanted = {found.unloaded, *decider.list_wanted(1)}
        heads = {}
        for group in wanted:
            loaded[group] += step
            every = state.heads[group]
            is_complete = loaded[group] > len(every.jobs)
            heads[group] = every._replace(jobs=every.jobs[: loaded[group]], is_complete=is_complete)
        decider.load(LoadedHeads(heads=heads, equipped={}, experiments={}))
    assert found.assignments == decide(state).assignments
