"""The hooks of the engine, on fakes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from workers.core.types import LearnReport, StopReason
from workers.hooks.guards import NanGuardHook, SuccessHook
from workers.hooks.learning_rate import LearningRateHook
from workers.rl.evaluate.vector_evaluator import summarise

NAN = float("nan")


class RecordingView:
    """A view of a run that records the requests of a hook."""

    def __init__(self) -> None:
        self.stop: StopReason | None = None
        self.clock: Any = SimpleNamespace(env_steps=0)
        self.agent: Any = SimpleNamespace(learning_rate=None)

    def request_stop(self, reason: StopReason) -> None:
        self.stop = reason


def feed(hook: NanGuardHook, view: Any, *losses: float, tensors: bool = True) -> None:
    for loss in losses:
        values: Any = torch.tensor([1.0, loss]) if tensors else [1.0, loss]
        hook.on_tick(view, [LearnReport(1, values)])


def test_reports_of_several_kinds_are_counted_together_after_a_resume() -> None:
    view = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td", "gradient/norm"), 20)
    hook.load_state_dict({"bad": 0, "pending": [[1, False]] * 16})
    kinds = (
        torch.tensor([1.0, NAN, 1.0]),
        np.array([1.0, NAN, 1.0], np.float32),
        [1.0, NAN, 1.0],
        (1.0, NAN, 1.0),
    )
    for kind in kinds[:3]:
        hook.on_tick(view, [LearnReport(1, kind)])
    assert view.stop is None
    hook.on_tick(view, [LearnReport(1, kinds[3])])
    assert view.stop is StopReason.DIVERGED


@pytest.mark.parametrize("tensors", [True, False])
def test_a_row_of_losses_that_are_not_finite_ends_the_run(tensors: bool) -> None:
    view = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td"), 4)
    feed(hook, view, NAN, NAN, NAN, 1.0, float("inf"), NAN, NAN, tensors=tensors)
    assert view.stop is None
    feed(hook, view, NAN, tensors=tensors)
    assert view.stop is StopReason.DIVERGED


def test_only_losses_are_checked() -> None:
    view = RecordingView()
    hook = NanGuardHook(("loss/td", "q/mean"), 1)
    hook.on_tick(view, [LearnReport(1, [1.0, NAN])])  # type: ignore[arg-type]
    assert view.stop is None


def test_the_row_goes_on_after_a_resume() -> None:
    view = RecordingView()
    first = NanGuardHook(("q/mean", "loss/td"), 60)
    feed(first, view, *[NAN] * 55)
    second = NanGuardHook(("q/mean", "loss/td"), 60)
    second.load_state_dict(first.state_dict())
    feed(second, view, *[NAN] * 44)
    assert view.stop is None
    feed(second, view, NAN)
    assert view.stop is StopReason.DIVERGED


def test_success_needs_its_evaluations_in_a_row_and_is_remembered() -> None:
    view: Any = RecordingView()
    hook = SuccessHook(10.0, 2)
    for score in (11.0, 9.0, 10.0):
        hook.on_evaluation(view, summarise([score], [1], 0))
    assert view.stop is None
    hook.on_evaluation(view, summarise([10.0], [1], 0))
    assert view.stop is StopReason.SUCCESS_SCORE
    later: Any = RecordingView()
    again = SuccessHook(10.0, 2)
    again.load_state_dict(hook.state_dict())
    again.on_start(later)
    assert later.stop is StopReason.SUCCESS_SCORE


def test_the_learning_rate_falls_to_its_end_and_stays() -> None:
    view: Any = RecordingView()
    hook = LearningRateHook(1.0, 0.2, 100)
    hook.on_start(view)
    assert view.agent.learning_rate == 1.0
    for env_steps, expected in ((50, 0.6), (100, 0.2), (1_000, 0.2)):
        view.clock.env_steps = env_steps
        hook.on_tick(view, [])
        assert view.agent.learning_rate == pytest.approx(expected)
