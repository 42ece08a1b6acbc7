"""The state that several engines share: concurrent access, killed processes, use in an engine."""

import math
import multiprocessing
import os
import signal
import threading
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.support.trainer_fakes import (
    FakeAgent,
    FakeCollector,
    FakeEvaluator,
    FakeRecorder,
    FakeSnapshotter,
)
from workers.core.shared_counter import SharedCount
from workers.core.types import CollectPlan, LearnSchedule, Unit
from workers.engine.budget import UNLIMITED
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.entrypoints.async_training.process_parts import ProcessControl
from workers.entrypoints.async_training.shared_block import SharedBlock, Slot, StopCause
from workers.entrypoints.async_training.shared_parts import (
    EndOfRun,
    SharedBestScore,
    SharedBudget,
    SharedClock,
    SharedIntervalTrigger,
)

METHODS = ["spawn", "fork"]


def get_constant_time() -> float:
    return 0.0


def make_clock(block: SharedBlock, bound: int = UNLIMITED) -> SharedClock:
    return SharedClock(get_constant_time, block.reopen(), bound)


def claim(block: SharedBlock, times: int, link: Connection) -> None:
    clock = make_clock(block)
    claimed = []
    for _ in range(times):
        clock.count(1, 0)
        claimed.append(clock.env_steps)
    link.send(claimed)


def hold(block: SharedBlock, link: Connection) -> None:
    with block.reopen().hold_lock():
        link.send("held")
        signal.pause()


def start_process(method: str, target: Any, *arguments: Any) -> tuple[Any, Connection]:
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    return process, ours


def test_threads_claim_each_env_step_once() -> None:
    block, claimed = SharedBlock(4), []

    def claim_steps() -> None:
        clock = make_clock(block)
        for _ in range(3_000):
            clock.count(1, 0)
            claimed.append(clock.env_steps)

    threads = [threading.Thread(target=claim_steps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == list(range(1, 12_001))


@pytest.mark.processes
@pytest.mark.parametrize("method", METHODS)
def test_processes_claim_each_env_step_once(method: str) -> None:
    block = SharedBlock(2)
    children = [start_process(method, claim, block, 5_000) for _ in range(2)]
    claimed = [number for _, link in children for number in link.recv()]
    for process, _ in children:
        process.join()
    assert sorted(claimed) == list(range(1, 10_001))
    assert block.env_steps.value == 10_000


def add(count: SharedCount, times: int, link: Connection) -> None:
    link.send([count.add(3) for _ in range(times)])


@pytest.mark.processes
@pytest.mark.parametrize("method", METHODS)
def test_a_count_of_several_processes_loses_nothing(method: str) -> None:
    count = SharedCount()
    count.value = 7
    children = [start_process(method, add, count, 20_000) for _ in range(3)]
    sums = [number for _, link in children for number in link.recv()]
    for process, _ in children:
        process.join()
    assert sorted(sums) == list(range(10, 7 + 3 * 60_000 + 1, 3))
    assert count.value == 7 + 3 * 60_000


@pytest.mark.processes
def test_a_process_killed_while_it_holds_the_lock_blocks_nobody() -> None:
    block = SharedBlock(2)
    process, link = start_process("fork", hold, block)
    assert link.recv() == "held"
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    clock = make_clock(block)
    clock.count(1, 1)
    assert (clock.env_steps, clock.episodes) == (1, 1)


def test_a_clock_shows_what_its_process_claimed_last() -> None:
    block = SharedBlock(2)
    first, second = make_clock(block), make_clock(block)
    first.count(1, 1)
    second.count(2, 0)
    second.updates += 3
    first.updates += 2
    assert (first.env_steps, second.env_steps, second.claimed) == (1, 3, 2)
    assert (first.updates, second.updates) == (5, 3)
    assert first.totals() == {**first.state_dict(), "env_steps": 3, "episodes": 1, "updates": 5}
    first.catch_up()
    assert (first.env_steps, first.episodes, first.updates) == (3, 1, 5)


def test_a_loaded_clock_continues_for_all_processes() -> None:
    block, other = SharedBlock(2), SharedBlock(2)
    source = make_clock(other)
    source.count(7, 2)
    source.updates += 4
    source.iterations += 3
    clocks = [make_clock(block), make_clock(block)]
    for clock in clocks:
        clock.load_state_dict(source.state_dict())
    clocks[0].count(1, 0)
    clocks[1].count(1, 1)
    clocks[1].updates += 1
    assert (
        clocks[0].env_steps,
        clocks[1].env_steps,
        clocks[1].episodes,
        clocks[1].updates,
        clocks[0].iterations,
    ) == (8, 9, 3, 5, 3)


def test_each_multiple_belongs_to_the_process_that_claimed_its_env_step() -> None:
    block = SharedBlock(3)
    clocks = [make_clock(block) for _ in range(3)]
    triggers = [SharedIntervalTrigger(10, clock, 100) for clock in clocks]
    fired = Counter[int]()
    for turn in range(120):
        index = (turn * turn) % 3
        clocks[index].count(1, 0)
        if triggers[index].take_due(clocks[index]):
            fired[clocks[index].env_steps] += 1
        assert not triggers[index].take_due(clocks[index]), "asked twice"
    assert fired == dict.fromkeys(range(10, 100, 10), 1)


def test_a_claim_over_several_multiples_counts_them_and_none_from_the_bound_on() -> None:
    clock = make_clock(SharedBlock(1))
    trigger = SharedIntervalTrigger(10, clock, 50)
    assert trigger.next == 10
    clock.count(25, 0)
    assert (trigger.take_due(clock), trigger.next) == (2, 30)
    clock.count(100, 0)
    assert (trigger.take_due(clock), trigger.next) == (2, UNLIMITED)
    clock.count(10, 0)
    assert trigger.take_due(clock) == 0
    with pytest.raises(ValueError, match="at least 1"):
        SharedIntervalTrigger(0, clock, 10)


def test_the_best_improves_strictly_over_all() -> None:
    block = SharedBlock(2)
    first, second = SharedBestScore(block.reopen()), SharedBestScore(block.reopen())
    assert first.score is None
    assert first.store_if_better(-3.0)
    assert not second.store_if_better(-3.0)
    assert not second.store_if_better(math.nan)
    assert second.store_if_better(0.0)
    assert first.score == 0.0
    first.score = None
    assert second.score is None
    assert second.store_if_better(-math.inf) is False


def test_one_of_many_threads_improves_to_each_score() -> None:
    block, improved = SharedBlock(4), []

    def improve_scores() -> None:
        best = SharedBestScore(block.reopen())
        improved.extend(score for score in range(500) if best.store_if_better(float(score)))

    threads = [threading.Thread(target=improve_scores) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(Counter(improved).values()) == 1
    assert block.reals[Slot.BEST] == 499.0


def test_the_first_to_claim_the_end_writes_it() -> None:
    block = SharedBlock(2)
    first, second = EndOfRun(block.reopen(), 0), EndOfRun(block.reopen(), 1)
    assert second.claim(StopCause.SUCCESS)
    assert second.claim(StopCause.SUCCESS)
    assert not first.claim(StopCause.BUDGET)
    assert not second.claim(StopCause.BUDGET)
    assert (
        first.is_over,
        first.writes_last_snapshot,
        second.writes_last_snapshot,
        first.is_aborted,
        first.ending,
    ) == (
        True,
        False,
        True,
        False,
        StopCause.SUCCESS,
    )


def test_an_abort_overrides_a_claim_and_only_the_first_one_counts() -> None:
    block = SharedBlock(2)
    first, second = EndOfRun(block.reopen(), 0), EndOfRun(block.reopen(), 1)
    first.claim(StopCause.BUDGET)
    second.abort(1)
    first.abort(0)
    assert (first.writes_last_snapshot, second.writes_last_snapshot, first.is_aborted) == (
        False,
        True,
        True,
    )
    other = EndOfRun(SharedBlock(1), 0)
    other.abort(None)
    assert (other.writes_last_snapshot, other.is_aborted, other.ending) == (
        False,
        True,
        StopCause.ABANDONED,
    )


def test_a_process_is_alone_once_the_others_stopped() -> None:
    block = SharedBlock(3)
    ends = [EndOfRun(block.reopen(), index) for index in range(3)]
    ends[0].mark_stopped()
    ends[1].mark_stopped()
    assert [end.have_others_stopped() for end in ends] == [False, False, True]


def test_process_0_ends_the_run_at_the_budget_of_all() -> None:
    block = SharedBlock(2)
    clocks = [make_clock(block, 10) for _ in range(2)]
    budgets = [
        SharedBudget(10, clock, block, EndOfRun(block, index)) for index, clock in enumerate(clocks)
    ]
    clocks[0].count(9, 0)
    assert [budget.is_exhausted(clock) for budget, clock in zip(budgets, clocks, strict=True)] == [
        False,
        False,
    ]
    assert budgets[1].room(clocks[1], Unit.ENV_STEPS) == 1
    assert budgets[1].room(clocks[1], Unit.UPDATES) == UNLIMITED
    clocks[1].count(2, 0)
    assert [budget.is_exhausted(clock) for budget, clock in zip(budgets, clocks, strict=True)] == [
        True,
        False,
    ]
    assert budgets[1].is_reached
    assert budgets[1].room(clocks[1], Unit.ENV_STEPS) == 0


def test_a_budget_that_another_process_ended_for_another_reason_is_not_its_own() -> None:
    block = SharedBlock(2)
    EndOfRun(block, 1).claim(StopCause.SUCCESS)
    clock = make_clock(block)
    clock.count(10, 0)
    assert not SharedBudget(10, clock, block, EndOfRun(block, 0)).is_exhausted(clock)


def test_engines_on_one_block_are_one_run() -> None:
    block, trace = SharedBlock(2), list[Any]()
    plan, schedule = CollectPlan(vector_steps=1), LearnSchedule(every_env_steps=2**62, updates=1)
    engines, evaluators = [], []
    for index in range(2):
        clock, end = make_clock(block, 20), EndOfRun(block, index)
        budget = SharedBudget(20, clock, block, end)
        evaluators.append(FakeEvaluator(trace, (1.0,)))
        parts = Parts(
            agent=FakeAgent(trace, plan, schedule),
            collector=FakeCollector(trace),
            recorder=FakeRecorder(trace),
            snapshotter=FakeSnapshotter(trace),
            control=ProcessControl(end, budget, clock, None),
            evaluator=evaluators[-1],
            best=SharedBestScore(block),
            clock=clock,
        )
        cadence = Cadence(
            budget=budget,
            evaluation=SharedIntervalTrigger(5, clock, 20),
            has_final_evaluation=index == 0,
        )
        engines.append(Engine(parts, cadence, get_constant_time))
    steps = []
    for first, second in zip(engines[1].ticks(), engines[0].ticks(), strict=False):
        steps += [first.env_steps, second.env_steps]
    assert steps[:18] == list(range(1, 19))
    assert sorted(evaluators[0].at + evaluators[1].at) == [5, 10, 15, 20]
    assert trace.count("snapshot best") == 1
