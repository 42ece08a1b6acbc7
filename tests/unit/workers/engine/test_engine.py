"""The engine on fakes: order of calls, counters and resume."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.support.trainer_fakes import Rig, TracingHook, make_cadence
from workers.core.types import (
    CollectPlan,
    LearnReport,
    LearnSchedule,
    SnapshotReason,
    StopReason,
    Unit,
)

STEPS = Unit.ENV_STEPS


def test_one_iteration_calls_the_parts_in_order() -> None:
    trace: list[Any] = []
    rig = Rig(
        make_cadence({STEPS: 10}, epoch=2, evaluation=2, snapshot=2),
        episode_steps=2,
        scores=(5.0,),
        hooks=(TracingHook(trace),),
        trace=trace,
    )
    ticks = rig.engine.ticks()
    next(ticks)
    assert trace == ["on_start", "collect", "observe", "learn", "on_tick", "record"]
    trace.clear()
    next(ticks)
    assert trace == [
        *("collect", "observe", "learn", "on_tick", "on_episode", "record", "record epoch"),
        *("evaluate", "on_evaluation", "record evaluation"),
        *("flush", "snapshot best", "on_snapshot"),
    ]
    next(ticks)
    trace.clear()
    next(ticks)
    assert trace == [
        *("collect", "observe", "learn", "on_tick", "on_episode", "record", "record epoch"),
        *("evaluate", "on_evaluation", "record evaluation"),
        *("flush", "snapshot periodic", "on_snapshot"),
    ]


def test_an_order_is_seen_last_and_saves_once() -> None:
    rig = Rig(
        make_cadence({STEPS: 10}, evaluation=2, snapshot=2), order=StopReason.PAUSE, order_after=2
    )
    result = rig.engine.run()
    assert result.reason is StopReason.PAUSE
    assert rig.trace[-4:] == ["flush", "snapshot best", "acknowledge pause", "flush"]
    assert [reason for reason, _, _ in rig.snapshotter.saved] == [SnapshotReason.BEST]
    assert rig.evaluator.at == [2]


def test_an_order_between_snapshots_saves_with_the_reason_stop() -> None:
    rig = Rig(make_cadence({STEPS: 10}), order=StopReason.DRAIN, order_after=3)
    result = rig.engine.run()
    assert (result.reason, result.snapshot_id) == (StopReason.DRAIN, "snp_1")
    assert rig.snapshotter.saved == [(SnapshotReason.STOP, 3, None)]
    assert rig.evaluator.at == []


def test_a_finished_run_is_evaluated_once_and_saved() -> None:
    rig = Rig(make_cadence({STEPS: 5}, evaluation=2, epoch=2, saves_best=False))
    assert rig.engine.run().reason is StopReason.BUDGET
    assert rig.evaluator.at == [2, 4, 5]
    assert rig.snapshotter.saved == [(SnapshotReason.FINISH, 5, 0.0)]
    evaluations = [row for row in rig.recorder.rows if row[0] == "evaluation"]
    assert [row[-1] for row in evaluations] == [False, False, True]
    assert [row for row in rig.recorder.rows if row[0] == "epoch"] == [
        ("epoch", 1, 2),
        ("epoch", 2, 4),
        ("epoch", 3, 5),
    ]


def test_the_trained_state_is_saved_before_the_final_evaluation() -> None:
    cadence = make_cadence(
        {STEPS: 5}, evaluation=2, saves_best=False, saves_before_final_evaluation=True
    )
    rig = Rig(cadence)
    rig.engine.run()
    saved = [(SnapshotReason.PERIODIC, 5, None), (SnapshotReason.FINISH, 5, 0.0)]
    assert rig.snapshotter.saved == saved
    assert rig.trace.index("snapshot periodic") < len(rig.trace) - rig.trace[::-1].index("evaluate")
    rest = Rig(cadence)
    rest.engine.restore(rig.snapshotter.states[0])
    rest.engine.run()
    assert rest.evaluator.at == [5], "a run that is resumed there is evaluated and ends"
    assert rest.snapshotter.saved == saved


def test_a_state_that_was_evaluated_or_saved_is_not_saved_before_the_final_evaluation() -> None:
    options = {"saves_best": False, "saves_before_final_evaluation": True}
    evaluated = Rig(make_cadence({STEPS: 4}, evaluation=2, **options))
    evaluated.engine.run()
    assert evaluated.snapshotter.saved == [(SnapshotReason.FINISH, 4, 0.0)]


def test_the_last_evaluation_is_not_made_twice() -> None:
    rig = Rig(make_cadence({STEPS: 4}, evaluation=2, saves_best=False))
    rig.engine.run()
    assert rig.evaluator.at == [2, 4]
    assert [row[-1] for row in rig.recorder.rows if row[0] == "evaluation"] == [False, True]


@pytest.mark.parametrize(("num_envs", "budget", "end"), [(1, 7, 7), (4, 10, 12), (8, 100, 104)])
def test_the_budget_is_exact_for_one_environment_and_overshoots_by_less_than_all(
    num_envs: int, budget: int, end: int
) -> None:
    rig = Rig(make_cadence({STEPS: budget}), plan=CollectPlan(vector_steps=5), num_envs=num_envs)
    rig.engine.run()
    assert rig.engine.clock.env_steps == end


def test_rollouts_are_cut_for_the_budget_the_evaluation_and_the_learn() -> None:
    rig = Rig(
        make_cadence({STEPS: 40}, evaluation=12),
        plan=CollectPlan(vector_steps=8),
        schedule=LearnSchedule(every_env_steps=16, updates=3),
        num_envs=2,
    )
    rig.engine.run()
    assert rig.evaluator.at == [12, 24, 36, 40]
    assert [plan.vector_steps for plan in rig.collector.plans] == [6, 2, 4, 4, 2, 2]
    assert rig.agent.asked == [3, 3]


def test_evaluation_waits_for_the_end_of_an_episode() -> None:
    rig = Rig(
        make_cadence({STEPS: 30}, evaluation=10, evaluates_during_episode=False, saves_best=False),
        episode_steps=7,
    )
    rig.engine.run()
    assert rig.evaluator.at == [14, 21, 30]


def test_learning_keeps_its_ratio_with_several_environments_and_begins_after_the_warmup() -> None:
    rig = Rig(
        make_cadence({STEPS: 40}),
        num_envs=4,
        schedule=LearnSchedule(every_env_steps=2, updates=3, warmup_env_steps=20),
    )
    rig.engine.run()
    assert rig.agent.asked == [6] * 6
    assert rig.engine.clock.updates == 36


def test_updates_made_while_gathering_are_counted_at_once_and_recorded_before_those_of_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(
        make_cadence({STEPS: 8}),
        plan=CollectPlan(vector_steps=5),
        schedule=LearnSchedule(every_env_steps=8, updates=1),
    )
    collect = rig.collector.collect
    learnt = [LearnReport(2, (0.5,)), LearnReport(1, (0.25,))]
    monkeypatch.setattr(
        rig.collector, "collect", lambda plan: replace(collect(plan), learn_reports=learnt)
    )
    rig.engine.run()
    assert rig.engine.clock.updates == 7
    assert [row for row in rig.recorder.rows if row[0] == "learn"] == [
        *(("learn", 5, 3, (0.5,)), ("learn", 5, 3, (0.25,))),
        *(("learn", 8, 7, (0.5,)), ("learn", 8, 7, (0.25,)), ("learn", 8, 7, (8.0,))),
    ]


def test_updates_end_exactly_at_their_budget() -> None:
    rig = Rig(make_cadence({Unit.UPDATES: 7}), schedule=LearnSchedule(every_env_steps=1, updates=3))
    rig.engine.run()
    assert rig.agent.asked == [3, 3, 1]


def test_a_stop_requested_by_a_hook_takes_effect_at_the_next_boundary() -> None:
    class StopHook:
        def on_tick(self, view: Any, reports: Any) -> None:
            if view.clock.env_steps == 3:
                view.request_stop(StopReason.DIVERGED)

    rig = Rig(make_cadence({STEPS: 10}), hooks=(StopHook(),))
    assert rig.engine.run().reason is StopReason.DIVERGED
    assert rig.engine.clock.env_steps == 3
    assert rig.snapshotter.saved == [(SnapshotReason.EXCEPTION, 3, None)]


def test_hooks_may_ask_for_an_evaluation_and_a_snapshot() -> None:
    class RequestHook:
        def on_tick(self, view: Any, reports: Any) -> None:
            if view.clock.env_steps == 3:
                view.request_evaluation()
                view.request_snapshot()

    rig = Rig(make_cadence({STEPS: 5}, saves_best=False), hooks=(RequestHook(),))
    rig.engine.run()
    assert rig.evaluator.at == [3, 5]
    assert rig.snapshotter.saved[0] == (SnapshotReason.PERIODIC, 3, 0.0)


def test_an_exception_saves_a_snapshot_and_is_raised() -> None:
    rig = Rig(make_cadence({STEPS: 10}))

    def fail(_: Any) -> None:
        raise RuntimeError("the environment broke")

    rig.agent.observe = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="broke"):
        rig.engine.run()
    assert rig.snapshotter.saved == [(SnapshotReason.EXCEPTION, 1, None)]


def test_the_first_error_is_reported_when_saving_fails_as_well() -> None:
    rig = Rig(make_cadence({STEPS: 10}))

    def fail(*_: Any) -> str:
        raise OSError("disk full")

    rig.agent.observe = fail  # type: ignore[method-assign, assignment]
    rig.snapshotter.save = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk full") as raised:
        rig.engine.run()
    assert "could not be saved" in raised.value.__notes__[0]


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("at", [1, 7, 19, 33])
def test_a_resumed_engine_makes_the_same_calls(num_envs: int, at: int) -> None:
    def make_rig(order_after: int | None = None) -> Rig:
        return Rig(
            make_cadence({STEPS: 120}, epoch=10, evaluation=15, snapshot=8),
            num_envs=num_envs,
            episode_steps=7,
            schedule=LearnSchedule(every_env_steps=4, updates=2, warmup_env_steps=12),
            scores=(1.0,),
            order=StopReason.PAUSE if order_after else None,
            order_after=order_after or 1,
        )

    straight, first, second = make_rig(), make_rig(at), make_rig()
    straight.engine.run()
    first.engine.run()
    second.engine.restore(copy.deepcopy(first.snapshotter.states[-1]))
    second.engine.run()
    assert first.recorder.rows + second.recorder.rows == straight.recorder.rows
    ignore = {"wall_seconds"}
    ends = [
        {k: v for k, v in one.engine.clock.state_dict().items() if k not in ignore}
        for one in (second, straight)
    ]
    assert ends[0] == ends[1]
    assert second.agent.asked == straight.agent.asked


def test_without_a_saved_memory_the_warmup_begins_again() -> None:
    first = Rig(
        make_cadence({STEPS: 20}, saves_memory=False),
        schedule=LearnSchedule(every_env_steps=1, updates=1, warmup_env_steps=5),
    )
    first.engine.run()
    assert "memory" not in first.snapshotter.states[-1]
    second = Rig(
        make_cadence({STEPS: 40}, saves_memory=False),
        schedule=LearnSchedule(every_env_steps=1, updates=1, warmup_env_steps=5),
    )
    report = second.engine.restore(first.snapshotter.states[-1])
    assert not report.is_exact
    assert report.notes[0][0] == "resume_statistical"
    second.engine.run()
    assert second.engine.clock.updates == first.engine.clock.updates + 16


def test_a_caller_may_drive_by_epochs() -> None:
    rig = Rig(
        make_cadence({STEPS: 1_000}, snapshot=4),
        schedule=LearnSchedule(every_env_steps=1, updates=2),
    )
    seen = []
    for epoch in rig.engine.epochs(3):
        seen.append(epoch)
        rig.agent.observe(rig.engine.collect(CollectPlan(vector_steps=3)))
        rig.engine.learn()
        rig.engine.learn(5)
    assert seen == [0, 1, 2]
    clock = rig.engine.clock
    assert (clock.epochs, clock.iterations, clock.env_steps, clock.updates) == (3, 3, 9, 21)
    assert [row for row in rig.recorder.rows if row[0] == "epoch"] == [
        ("epoch", 1, 3),
        ("epoch", 2, 6),
        ("epoch", 3, 9),
    ]
    assert [reason for reason, _, _ in rig.snapshotter.saved][-1] is SnapshotReason.FINISH
    assert list(rig.engine.epochs(4)) == [3]


def test_wall_time_counts_over_attempts() -> None:
    first = Rig(make_cadence({Unit.WALL_SECONDS: 5.0}))
    for _ in first.engine.ticks():
        first.now += 2.0
    assert first.engine.clock.env_steps == 4
    second = Rig(make_cadence({Unit.WALL_SECONDS: 9.0}))
    second.engine.restore(first.snapshotter.states[-1])
    for _ in second.engine.ticks():
        second.now += 1.0
    assert second.engine.clock.wall_seconds >= 9.0
    assert second.engine.clock.env_steps == 6
