"""Evaluations that run concurrently with training: the evaluated state, and who waits
for a result.
"""

from typing import Any

import pytest

from tests.support.trainer_fakes import Rig, make_cadence
from workers.core.protocols import ClockView
from workers.core.types import EvaluationResult, SnapshotReason, StopReason, Unit
from workers.engine.parts import Cadence
from workers.rl.evaluate.vector_evaluator import summarise

STEPS = Unit.ENV_STEPS


class BackgroundEvaluator:
    """An evaluator whose result is ready after `polls` polls, or when the caller waits for it."""

    def __init__(self, polls: int, scores: dict[int, float]) -> None:
        self.polls = polls
        self.scores = scores
        self.asked: list[str] = []
        self._clock: ClockView | None = None
        self._left = 0

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        self.asked.append(f"inline {clock.env_steps}")
        return summarise([self.scores.get(clock.env_steps, 0.0)], [1], 0)

    def begin(self, clock: ClockView) -> None:
        assert self._clock is None
        self.asked.append(f"begin {clock.env_steps}")
        self._clock, self._left = clock, self.polls

    def take_result(self, *, wait: bool) -> EvaluationResult | None:
        if self._clock is None:
            return None
        self._left -= 1
        if self._left > 0 and not wait:
            return None
        clock, self._clock = self._clock, None
        self.asked.append(f"{'waited' if wait else 'found'} {clock.env_steps}")
        return summarise([self.scores.get(clock.env_steps, 0.0)], [1], 0)


def make_rig(when: Cadence, evaluator: BackgroundEvaluator, **options: Any) -> Rig:
    return Rig(when, evaluator=evaluator, **options)


def list_evaluation_rows(made: Rig) -> list[Any]:
    return [row[1:] for row in made.recorder.rows if row[0] == "evaluation"]


def test_training_continues_and_the_result_is_of_the_requested_state() -> None:
    evaluator = BackgroundEvaluator(polls=3, scores={4: 7.0, 8: 5.0})
    made = make_rig(make_cadence({STEPS: 12}, evaluation=4, saves_best=True), evaluator)
    made.engine.run()
    assert evaluator.asked == ["begin 4", "found 4", "begin 8", "found 8", "begin 12", "waited 12"]
    assert [(at, score, final) for at, _, score, final in list_evaluation_rows(made)] == [
        (4, 7.0, False),
        (8, 5.0, False),
        (12, 0.0, True),
    ]
    reason, at, score = made.snapshotter.saved[0]
    assert (reason, at, score) == (SnapshotReason.BEST, 4, 7.0)
    assert made.snapshotter.states[0]["clock"]["env_steps"] == 4
    assert "memory" not in made.snapshotter.states[0]


def test_an_evaluation_waits_for_the_previous_one() -> None:
    evaluator = BackgroundEvaluator(polls=1_000, scores={})
    make_rig(make_cadence({STEPS: 5}, evaluation=2), evaluator).engine.run()
    assert evaluator.asked == ["begin 2", "waited 2", "begin 4", "waited 4", "inline 5"]


def test_a_snapshot_waits_for_the_running_evaluation() -> None:
    evaluator = BackgroundEvaluator(polls=1_000, scores={})
    made = make_rig(make_cadence({STEPS: 6}, evaluation=4, snapshot=5, saves_best=False), evaluator)
    made.engine.run()
    assert evaluator.asked == ["begin 4", "waited 4", "inline 6"]
    assert made.snapshotter.states[0]["loop"]["evaluations"]["at"] == [4, 4]


def test_a_pause_waits_for_the_running_evaluation() -> None:
    evaluator = BackgroundEvaluator(polls=1_000, scores={})
    made = make_rig(
        make_cadence({STEPS: 9}, evaluation=4), evaluator, order=StopReason.PAUSE, order_after=6
    )
    made.engine.run()
    assert evaluator.asked == ["begin 4", "waited 4"]
    assert [at for at, *_ in list_evaluation_rows(made)] == [4]


def test_an_exception_does_not_wait_for_the_running_evaluation() -> None:
    evaluator = BackgroundEvaluator(polls=1_000, scores={})
    made = make_rig(make_cadence({STEPS: 9}, evaluation=4), evaluator)
    observe = made.agent.observe

    def observe_and_raise(experience: Any) -> None:
        observe(experience)
        if made.engine.clock.env_steps == 6:
            raise RuntimeError("broken")

    made.agent.observe = observe_and_raise  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="broken"):
        made.engine.run()
    assert evaluator.asked == ["begin 4"]
    assert made.snapshotter.saved[-1][0] is SnapshotReason.EXCEPTION
