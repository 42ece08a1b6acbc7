"""The order of a pool's queue and the assignments, example by example."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.queue.decision import Decider, InOrder, PoolState, decide, jobs_ahead
from app.domain.queue.holds import Hold, HoldReason, RunningLimit, RunningLimits
from app.domain.queue.start_order import ExperimentKey, Group, Heads, UsageAccount
from palestra.contract.names import PriorityClass
from tests.support.queue_states import NOW, make_job, make_state, make_worker


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


def test_a_job_takes_as_many_slots_of_a_worker_as_have_its_gpus() -> None:
    jobs = [make_job("four", age=9, gpus=4), make_job("one", age=8, gpus=1)]
    worker = make_worker(free_slots=3, gpus=6)
    decision = decide(make_state(jobs, [worker]))
    assert [one.job.id for one in decision.assignments] == ["four", "one"]
    assert [worker.count_slots(gpus) for gpus in (0, 1, 2, 3, 4, 6)] == [1, 1, 1, 2, 2, 3]
    shared = make_worker(free_slots=4, gpus=2)
    assert [shared.count_slots(gpus) for gpus in (1, 2)] == [1, 3]


def test_a_job_on_several_slots_reserves_the_worker_that_frees_first() -> None:
    jobs = [
        make_job("wide", age=9, gpus=2),
        make_job("endless", age=8),
        make_job("long", age=7, wall_seconds=600),
        make_job("short", age=6, wall_seconds=60),
    ]
    late = make_worker("late", 1, gpus=2, busy=[900.0])
    first = make_worker("first", 1, gpus=2, busy=[300.0])
    decision = decide(make_state(jobs, [first]))
    start = NOW + timedelta(seconds=300)
    assert [one.job.id for one in decision.assignments] == ["short"]
    assert decision.holds == {
        "wide": Hold(HoldReason.SLOTS_BUSY),
        "endless": Hold(HoldReason.RESERVED, "wide", "first", start),
        "long": Hold(HoldReason.RESERVED, "wide", "first", start),
    }
    both = decide(make_state(jobs, [first, late]))
    assert [(one.job.id, one.worker_id) for one in both.assignments] == [
        ("endless", "late"),
        ("short", "first"),
    ]


def test_no_job_starts_where_it_is_not_known_when_a_job_on_several_slots_can() -> None:
    jobs = [make_job("wide", age=9, gpus=2), make_job("short", age=6, wall_seconds=60)]
    state = make_state(jobs, [make_worker("one", 1, gpus=2, busy=[None])])
    decider = Decider(state)
    assert decider.run().assignments == ()
    assert decider.find_hold(jobs[1]) == Hold(HoldReason.RESERVED, "wide", "one")
    assert decider.find_hold(jobs[0]) == Hold(HoldReason.SLOTS_BUSY, "wide", "one")


def test_slots_that_a_reservation_does_not_need_may_be_used() -> None:
    jobs = [make_job("wide", age=9, gpus=2), make_job("one", age=8), make_job("two", age=7)]
    worker = make_worker("one", 1, gpus=4, busy=[300.0, 300.0, 300.0])
    wider = make_worker("one", 1, gpus=4, busy=[300.0, None, None])
    assert [one.job.id for one in decide(make_state(jobs, [worker])).assignments] == ["one"]
    assert decide(make_state(jobs, [wider])).assignments == ()
