"""The order of a pool's queue and the assignments, against a naive form of the same rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.queue import usage
from app.domain.queue.decision import InOrder, PoolState, WorkerOffer, decide, jobs_ahead
from app.domain.queue.holds import Hold, HoldReason, RunningLimit, RunningLimits
from app.domain.queue.start_order import (
    ExperimentKey,
    Group,
    Heads,
    QueuedJob,
    Shares,
    UsageAccount,
)
from palestra.contract.names import PriorityClass

NOW = usage.LANDMARK + timedelta(weeks=46)
"""A whole number of half-lives after the landmark: usage is exact, so equal usage is a tie."""


def make_job(
    name: str,
    user: str = "ada",
    *,
    project: str = "robots",
    priority_class: PriorityClass = PriorityClass.NORMAL,
    priority: int = 0,
    seed_index: int = 0,
    age: float = 0.0,
    gpus: int = 0,
    version: int = 2,
    requirements: str = "",
    experiment: str = "exp_1",
    wall_seconds: int | None = None,
) -> QueuedJob:
    return QueuedJob(
        id=name,
        attempt=0,
        group=Group(priority_class, project, user),
        priority=priority,
        seed_index=seed_index,
        queued_at=NOW - timedelta(seconds=age),
        gpus=gpus,
        version=version,
        requirements=requirements,
        experiment_id=experiment,
        wall_seconds=wall_seconds,
        grace_seconds=120,
    )


def make_state(
    jobs: Sequence[QueuedJob],
    workers: Sequence[WorkerOffer] = (),
    usage_of: dict[tuple[str, str], float] | None = None,
    shares: dict[str, float] | None = None,
    *,
    is_waiting_known: bool = False,
    limits: RunningLimits | None = None,
) -> PoolState:
    """Returns a state; `is_waiting_known` makes each group wait since its oldest job was queued."""
    groups: dict[Group, list[QueuedJob]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    projects = {job.group.project_id for job in jobs}
    return PoolState(
        shares=Shares(
            now=NOW,
            shares=shares or dict.fromkeys(projects, 1.0),
            usage={
                UsageAccount(*account): seconds * usage.weight(NOW)
                for account, seconds in (usage_of or {}).items()
            },
        ),
        heads={
            group: Heads(
                jobs=sorted(own, key=lambda job: job.own_order),
                is_complete=True,
                waiting_since=min(job.queued_at for job in own) if is_waiting_known else NOW,
            )
            for group, own in groups.items()
        },
        workers=workers,
        limits=limits or RunningLimits(),
    )


def make_worker(
    name: str = "worker", free_slots: int = 1, gpus: int = 0, free_seconds: float | None = None
) -> WorkerOffer:
    return WorkerOffer(
        worker_id=name,
        free_slots=free_slots,
        gpus=gpus,
        versions=frozenset({1, 2}),
        free_until=None if free_seconds is None else NOW + timedelta(seconds=free_seconds),
    )


def names_in_order(state: PoolState) -> list[str]:
    order, names = InOrder(replace(state, workers=[make_worker(gpus=64)])), list[str]()
    while (job := order.next()) is not None:
        names.append(job.id)
    return names


def test_classes_come_before_usage_and_priority() -> None:
    jobs = [
        make_job("idle", "a", priority_class=PriorityClass.IDLE, priority=100),
        make_job("normal", "b", priority=-100),
        make_job("urgent", "c", priority_class=PriorityClass.URGENT),
        make_job("interactive", "d", priority_class=PriorityClass.INTERACTIVE),
    ]
    used = {("robots", "d"): 1e9, ("robots", "c"): 1e8, ("robots", "b"): 1e7}
    assert names_in_order(make_state(jobs, usage_of=used)) == [
        "interactive",
        "urgent",
        "normal",
        "idle",
    ]


def test_the_project_with_the_least_usage_for_its_share_comes_first() -> None:
    jobs = [make_job("one", project="robots"), make_job("two", project="games")]
    used = {("robots", "ada"): 300.0, ("games", "ada"): 200.0}
    assert names_in_order(make_state(jobs, usage_of=used)) == ["two", "one"]
    shares = {"robots": 2.0, "games": 1.0}
    assert names_in_order(make_state(jobs, usage_of=used, shares=shares)) == ["one", "two"]


def test_of_equal_usage_whoever_waits_longest_is_first() -> None:
    jobs = [
        make_job("zoe", "zoe", age=9),
        make_job("ada", "ada", age=5),
        make_job("games", "bob", project="games", age=7),
    ]
    assert names_in_order(make_state(jobs, is_waiting_known=True)) == ["zoe", "games", "ada"]


def test_usage_of_a_person_counts_within_the_project_alone() -> None:
    jobs = [make_job("one", "ada"), make_job("two", "bob")]
    used = {("robots", "ada"): 10.0, ("robots", "bob"): 20.0, ("games", "ada"): 1e6}
    assert names_in_order(make_state(jobs, usage_of=used)) == ["one", "two"]


def test_a_second_person_starts_next_after_two_hundred_jobs_of_the_first() -> None:
    jobs = [make_job(f"{number:03}", "ada", age=60, seed_index=number) for number in range(200)]
    late = make_job("late", "bob")
    decision = decide(make_state([*jobs, late], [make_worker(free_slots=2)]))
    assert [one.job.id for one in decision.assignments] == ["000", "late"]


def test_slots_that_fall_free_together_are_shared() -> None:
    jobs = [make_job(f"{user}{number}", user) for user in ("ada", "bob") for number in range(20)]
    decision = decide(make_state(jobs, [make_worker(free_slots=10)]))
    assert Counter(one.job.group.user_id for one in decision.assignments) == {"ada": 5, "bob": 5}


def test_slots_are_shared_by_the_shares_of_projects() -> None:
    jobs = [
        make_job(f"{project}{number}", project=project)
        for project in ("robots", "games")
        for number in range(40)
    ]
    state = make_state(jobs, [make_worker(free_slots=40)], shares={"robots": 3.0, "games": 1.0})
    taken = Counter(one.job.group.project_id for one in decide(state).assignments)
    assert taken == {"robots": 30, "games": 10}


def test_own_priority_then_seeds_breadth_first_then_age() -> None:
    jobs = [
        make_job("old seed 0", age=20),
        make_job("old seed 1", age=20, seed_index=1),
        make_job("new seed 0", age=10),
        make_job("new seed 1", age=10, seed_index=1),
        make_job("late but first", priority=1, seed_index=5),
    ]
    assert names_in_order(make_state(jobs)) == [
        "late but first",
        "old seed 0",
        "new seed 0",
        "old seed 1",
        "new seed 1",
    ]


def test_a_person_has_one_interactive_job_at_a_time() -> None:
    jobs = [
        make_job("one", age=2, priority_class=PriorityClass.INTERACTIVE),
        make_job("two", age=1, priority_class=PriorityClass.INTERACTIVE),
        make_job("other", "bob", priority_class=PriorityClass.INTERACTIVE),
        make_job("normal"),
    ]
    state = make_state(jobs, [make_worker(free_slots=4)])
    decision = decide(state)
    assert [one.job.id for one in decision.assignments] == ["one", "other", "normal"]
    assert decision.holds == {"two": Hold(HoldReason.INTERACTIVE_LIMIT)}
    held = decide(replace(state, interactive=frozenset({"ada"})))
    assert [one.job.id for one in held.assignments] == ["other", "normal"]


def test_a_job_that_fits_no_free_worker_does_not_block_the_others() -> None:
    jobs = [
        make_job("needs two", age=3, gpus=2),
        make_job("needs eight", age=2, gpus=8),
        make_job("none", age=1),
    ]
    workers = [make_worker("cpu"), make_worker("busy", 0, gpus=2)]
    decision = decide(make_state(jobs, workers))
    assert [(one.job.id, one.worker_id) for one in decision.assignments] == [("none", "cpu")]
    assert decision.holds == {
        "needs two": Hold(HoldReason.SLOTS_BUSY),
        "needs eight": Hold(HoldReason.NO_FITTING_WORKER),
    }


def test_a_job_without_a_gpu_leaves_workers_with_gpus_free() -> None:
    workers = [make_worker("gpu", 4, gpus=4), make_worker("cpu", 1)]
    decision = decide(make_state([make_job("one")], workers))
    assert decision.assignments[0].worker_id == "cpu"


def test_jobs_are_spread_over_equal_workers() -> None:
    workers = [make_worker("one", 2), make_worker("two", 2)]
    decision = decide(make_state([make_job("a"), make_job("b")], workers))
    assert {one.worker_id for one in decision.assignments} == {"one", "two"}


def test_a_job_waits_for_a_worker_that_has_its_code() -> None:
    job = make_job("one", requirements="exp_1")
    state = make_state([job], [make_worker("bare", 1), make_worker("equipped", 0)])
    equipped = {"exp_1": frozenset({"equipped"})}
    assert decide(replace(state, equipped=equipped)).holds == {"one": Hold(HoldReason.SLOTS_BUSY)}
    assert decide(state).assignments[0].worker_id == "bare"


def test_a_project_without_a_share_gets_nothing() -> None:
    jobs = [make_job("one", project="removed"), make_job("two", project="robots")]
    state = make_state(jobs, [make_worker(free_slots=2)], shares={"robots": 1.0})
    assert [one.job.id for one in decide(state).assignments] == ["two"]


def test_the_decision_names_the_group_of_which_more_jobs_are_needed() -> None:
    jobs = [make_job("one"), make_job("two", "bob")]
    state = make_state(jobs, [make_worker(free_slots=3)])
    group = jobs[0].group
    cut = {**state.heads, group: Heads(jobs=jobs[:1], is_complete=False)}
    decision = decide(replace(state, heads=cut))
    assert decision.unloaded == group
    assert [one.job.id for one in decision.assignments] == ["one", "two"]
    assert decide(replace(state, workers=[make_worker()], heads=cut)).unloaded is None


def test_an_experiment_has_no_more_running_jobs_than_it_may() -> None:
    jobs = [make_job(f"a{number}", seed_index=number, experiment="a") for number in range(4)]
    other = make_job("b0", seed_index=9, experiment="b")
    key = ExperimentKey("robots", "a")
    limits = RunningLimits(experiments={key: RunningLimit(running=1, most=3)})
    state = make_state([*jobs, other], [make_worker(free_slots=5)], limits=limits)
    decision = decide(state)
    assert [one.job.id for one in decision.assignments] == ["a0", "a1", "b0"]
    assert decision.holds == dict.fromkeys(["a2", "a3"], Hold(HoldReason.EXPERIMENT_LIMIT))
    full = RunningLimits(experiments={key: RunningLimit(running=3, most=3)})
    held = replace(state, limits=full)
    assert names_in_order(held) == ["b0"]
    ahead = jobs_ahead(held, jobs[1], 100)
    assert (ahead.jobs, ahead.hold) == ((), Hold(HoldReason.EXPERIMENT_LIMIT))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (
            RunningLimits(accounts={UsageAccount("robots", "ada"): RunningLimit(2, 3)}),
            HoldReason.PERSON_LIMIT,
        ),
        (RunningLimits(projects={"robots": RunningLimit(5, 6)}), HoldReason.PROJECT_LIMIT),
    ],
)
def test_limits_count_the_jobs_that_the_decision_starts(
    limits: RunningLimits, reason: HoldReason
) -> None:
    jobs = [make_job(f"ada{number}", seed_index=number) for number in range(3)]
    other = make_job("bob", "bob", project="games")
    state = make_state([*jobs, other], [make_worker(free_slots=4)], limits=limits)
    decision = decide(state)
    assert {one.job.id for one in decision.assignments} == {"ada0", "bob"}
    assert decision.holds == {"ada1": Hold(reason)}


@pytest.mark.parametrize(
    "limits",
    [
        RunningLimits(exhausted_accounts=frozenset({UsageAccount("robots", "ada")})),
        RunningLimits(exhausted_projects=frozenset({"robots"})),
    ],
)
def test_used_up_device_hours_hold_all_jobs_that_they_count(limits: RunningLimits) -> None:
    jobs = [make_job("ada"), make_job("elsewhere", project="games")]
    decision = decide(make_state(jobs, [make_worker(free_slots=2)], limits=limits))
    assert [one.job.id for one in decision.assignments] == ["elsewhere"]
    assert decision.holds == {"ada": Hold(HoldReason.DEVICE_HOURS)}


def test_a_held_group_needs_not_be_loaded() -> None:
    job = make_job("other", "bob")
    state = make_state([job], [make_worker(free_slots=2)])
    group = Group(PriorityClass.NORMAL, "robots", "ada")
    limits = RunningLimits(exhausted_accounts=frozenset({group.account}))
    unread = {group: Heads(), **state.heads}
    decision = decide(replace(state, heads=unread, limits=limits))
    assert decision.unloaded is None
    assert [one.job.id for one in decision.assignments] == ["other"]
    assert decide(replace(state, heads=unread)).unloaded == group


def test_jobs_start_on_a_worker_before_a_window_only_if_they_end_in_time() -> None:
    jobs = [
        make_job("endless", age=4),
        make_job("long", age=3, wall_seconds=600),
        make_job("short", age=2, wall_seconds=480),
    ]
    decision = decide(make_state(jobs, [make_worker(free_slots=3, free_seconds=600)]))
    assert [one.job.id for one in decision.assignments] == ["short"]
    assert decision.holds == dict.fromkeys(
        ["endless", "long"], Hold(HoldReason.NOT_FREE_LONG_ENOUGH)
    )
    begun = make_state(jobs, [make_worker(free_slots=3, free_seconds=0)])
    assert not decide(begun).assignments
    assert jobs_ahead(begun, jobs[2], 9).hold == Hold(HoldReason.NOT_FREE_LONG_ENOUGH)


def test_a_reservation_is_free_for_the_project_that_it_is_for() -> None:
    jobs = [make_job("other", age=9), make_job("holder", project="games")]
    worker = replace(
        make_worker(free_slots=2, free_seconds=0), free_until_by_project={"games": None}
    )
    decision = decide(make_state(jobs, [worker]))
    assert [one.job.id for one in decision.assignments] == ["holder"]


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
        st.sampled_from([0, 1, 2]),
        st.sampled_from([None, None, 0.0, 300.0, 900.0]),
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


def decide_naively(state: PoolState) -> list[str]:
    """Sorts all waiting jobs anew for every slot."""
    used = dict(state.shares.usage)
    waiting = [job for heads in state.heads.values() for job in heads.jobs]
    free = {worker.worker_id: worker.free_slots for worker in state.workers}
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

    def startable(job: QueuedJob) -> list[WorkerOffer]:
        if (
            job.group.priority_class is PriorityClass.INTERACTIVE
            and job.group.user_id in interactive
        ):
            return []
        if not is_permitted(job, state.limits, started):
            return []
        return [
            worker
            for worker in state.workers
            if free[worker.worker_id] > 0
            and worker.gpus >= job.gpus
            and (
                worker.free_until is None
                or (
                    job.wall_seconds is not None
                    and NOW + timedelta(seconds=job.wall_seconds + 120) <= worker.free_until
                )
            )
        ]

    while candidates := [job for job in waiting if startable(job)]:
        job = min(candidates, key=rank)
        waiting.remove(job)
        worker = min(
            startable(job),
            key=lambda one: (one.gpus, -free[one.worker_id], one.worker_id),
        )
        free[worker.worker_id] -= 1
        account = job.group.account
        used[account] = used.get(account, 0.0) + usage.quantum(job.devices, NOW)
        if job.group.priority_class is PriorityClass.INTERACTIVE:
            interactive.add(job.group.user_id)
        started.append(job)
    return [one.id for one in started]


@settings(max_examples=500)
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


@settings(max_examples=300)
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
            replace(worker, free_slots=1) if worker.gpus >= job.gpus else worker
            for worker in workers
        ]
        decision = decide(make_state(rest, roomy, charged, shares, limits=limits))
        assert job.id in [one.job.id for one in decision.assignments]
