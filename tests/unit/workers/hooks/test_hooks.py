"""The hooks of the engine, on fakes."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.core.report_values import read_values
from workers.core.types import LearnReport, StopReason
from workers.hooks.guards import NanGuardHook, SuccessHook
from workers.hooks.learning_rate import LearningRateHook
from workers.rl.evaluate.vector_evaluator import summarise

NAN = float("nan")


class RecordingView:
    """A view of a run that records the requests of a hook."""

    def __init__(self) -> None:
        self.stop: StopReason | None = None
        self.message = ""
        self.notes: list[str] = []
        self.clock: Any = SimpleNamespace(env_steps=0, updates=0, episodes=0)
        self.agent: Any = SimpleNamespace(learning_rate=None)

    def request_stop(self, reason: StopReason, message: str | None = None) -> None:
        self.stop, self.message = reason, message or ""

    def record_note(self, code: str, message: str) -> None:
        self.notes.append(message)


def feed(hook: NanGuardHook, view: Any, *losses: float, tensors: bool = True) -> None:
    """Passes one report per loss, at one env_step more each, until the hook ends the run."""
    for loss in losses:
        if view.stop is None:
            view.clock.env_steps += 1
            view.clock.episodes = view.clock.env_steps // 10
            values: Any = torch.tensor([1.0, loss]) if tensors else [1.0, loss]
            hook.on_tick(view, [LearnReport(1, values)])


def make_report(losses: Sequence[float], *, tensors: bool) -> LearnReport:
    """Returns the report of several updates with these losses."""
    rows = [[1.0, loss] for loss in losses]
    mean = [1.0, float(np.mean(losses))]
    if tensors:
        return LearnReport(len(rows), torch.tensor(mean), torch.tensor(rows))
    return LearnReport(len(rows), mean, rows)


def test_reports_of_several_kinds_are_counted_together_after_a_resume() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td", "gradient/norm"), 20)
    hook.load_state_dict({"bad": 16, "first": None, "note": None, "is_noted": False})
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


@given(
    losses=st.lists(
        st.tuples(st.sampled_from([0.5, NAN, -float("inf")]), st.integers(1, 90)), max_size=12
    ),
    sizes=st.lists(st.integers(1, 70), min_size=1),
    limit=st.integers(1, 160),
    tensors=st.booleans(),
    saves=st.integers(1, 9),
)
def test_the_run_ends_at_the_boundary_of_the_update_that_reaches_the_limit(
    losses: list[tuple[float, int]], sizes: list[int], limit: int, tensors: bool, saves: int
) -> None:
    """Whatever the sizes of the reports are, and wherever the run is resumed."""
    updates = [loss for loss, count in losses for _ in range(count)]
    view: Any = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td"), limit)
    row, begin, first_of_row, first_of_run = 0, 0, 0, 0
    for number, size in enumerate(itertools.cycle(sizes)):
        part = updates[begin : begin + size]
        if not part or view.stop is not None:
            break
        begin += size
        view.clock.env_steps = begin
        has_reached = False
        for loss in part:
            row = 0 if np.isfinite(loss) else row + 1
            if row == 1:
                first_of_row, first_of_run = begin, first_of_run or begin
            if row == limit:
                has_reached = True
                break
        hook.on_tick(view, [make_report(part, tensors=tensors)])
        assert view.stop is (StopReason.DIVERGED if has_reached else None)
        if has_reached:
            assert f"at env_step {first_of_row:,}," in view.message
        if number % saves == 0:
            state = json.loads(json.dumps(hook.state_dict()))
            hook = NanGuardHook(("q/mean", "loss/td"), limit)
            hook.load_state_dict(state)
    hook.on_finish(view, StopReason.BUDGET)
    assert len(view.notes) == (first_of_run > 0)
    if first_of_run:
        assert f"at env_step {first_of_run:,}," in view.notes[0]


def test_each_update_of_a_report_counts() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td"), 6)
    for _ in range(9):
        hook.on_tick(view, [make_report([1.0, *[NAN] * 5], tensors=False)])
    assert view.stop is None
    hook.on_tick(view, [make_report([NAN], tensors=False)])
    assert view.stop is StopReason.DIVERGED


def test_a_report_of_means_alone_counts_as_all_its_updates() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td"), 80)
    hook.on_tick(view, [LearnReport(40, [1.0, NAN])])
    assert view.stop is None
    hook.on_tick(view, [LearnReport(40, [1.0, NAN])])
    assert view.stop is StopReason.DIVERGED


def test_values_are_read_once_in_fifty_updates_unless_the_limit_is_near(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A read waits for the device."""
    reads: list[int] = []

    def read(values: Any) -> Any:
        reads.append(len(values))
        return read_values(values)

    monkeypatch.setattr("workers.hooks.guards.read_values", read)
    view = RecordingView()
    feed(NanGuardHook(("q/mean", "loss/td"), 100), view, *[1.0] * 500)
    assert reads == [50] * 10


def test_the_first_value_that_is_not_finite_is_named_with_its_place() -> None:
    view = RecordingView()
    hook = NanGuardHook(("loss/critic", "loss/actor"), 3)
    for critic, actor in ((1.0, 1.0), (1.0, NAN), (1.0, 1.0), (float("inf"), NAN), (NAN, 1.0)):
        view.clock.env_steps += 700
        view.clock.episodes += 2
        hook.on_tick(view, [LearnReport(1, [critic, actor])])
    hook.on_tick(view, [LearnReport(1, [NAN, NAN])])
    assert "loss/critic was inf at env_step 2,800, episode 8." in view.message
    (note,) = view.notes
    assert "loss/actor was nan at env_step 1,400, episode 4." in note


def test_losses_that_are_not_finite_are_noted_at_the_end_of_a_run_that_goes_on_with_them() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("q/mean", "loss/td"), 100)
    feed(hook, view, *[1.0] * 70, *[NAN] * 20)
    assert view.notes == []
    hook.on_finish(view, StopReason.BUDGET)
    assert view.stop is None
    assert ["loss/td was nan at env_step 71, episode 7." in note for note in view.notes] == [True]


def test_only_losses_are_checked() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("loss/td", "q/mean"), 1)
    hook.on_tick(view, [LearnReport(1, [1.0, NAN])])
    assert view.stop is None


def test_all_values_are_checked_where_none_is_a_loss() -> None:
    view: Any = RecordingView()
    hook = NanGuardHook(("return/elite", "weights/norm"), 1)
    hook.on_tick(view, [LearnReport(1, [1.0, NAN])])
    assert view.stop is StopReason.DIVERGED
    assert "weights/norm was nan" in view.message


def test_the_row_goes_on_after_a_resume() -> None:
    view = RecordingView()
    first = NanGuardHook(("q/mean", "loss/td"), 60)
    feed(first, view, *[NAN] * 55)
    second = NanGuardHook(("q/mean", "loss/td"), 60)
    second.load_state_dict(first.state_dict())
    feed(second, view, *[NAN] * 4)
    assert view.stop is None
    feed(second, view, NAN)
    assert view.stop is StopReason.DIVERGED
    assert "at env_step 1, episode 0" in view.message


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


def test_an_evaluation_with_cut_episodes_is_no_success() -> None:
    view: Any = RecordingView()
    hook = SuccessHook(10.0, 1)
    result = summarise([11.0, 12.0], [1, 10_000], 0)
    hook.on_evaluation(view, replace(result, cut_episodes=1))
    assert view.stop is None
    hook.on_evaluation(view, replace(result, cut_episodes=0))
    assert view.stop is StopReason.SUCCESS_SCORE


def test_the_learning_rate_falls_to_its_end_and_stays() -> None:
    view: Any = RecordingView()
    hook = LearningRateHook(1.0, 0.2, 100)
    hook.on_start(view)
    assert view.agent.learning_rate == 1.0
    for env_steps, expected in ((50, 0.6), (100, 0.2), (1_000, 0.2)):
        view.clock.env_steps = env_steps
        hook.on_tick(view, [])
        assert view.agent.learning_rate == pytest.approx(expected)
