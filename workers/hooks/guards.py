"""Hooks that end a run when it diverges or succeeds."""

from collections.abc import Sequence

import numpy as np

from workers.core.protocols import EngineView
from workers.core.report_values import read_values
from workers.core.types import EvaluationResult, LearnReport, StateTree, StopReason
from workers.hooks.evaluation_hooks import is_reached

_LOOK_EVERY: int = 50
"""Most reports that are collected before their losses are read from the device."""


class NanGuardHook:
    """Ends the run as diverged after `updates` consecutive updates whose loss is not finite.

    Losses are read in groups of reports, so that an update does not wait for the device. The run
    ends at most 50 reports late.

    Args:
        report_names: Names of the values in the agent's reports; those that begin with `loss/` are
            checked.
        updates: Number of consecutive updates.
    """

    def __init__(self, report_names: Sequence[str], updates: int) -> None:
        self._columns = [
            index for index, name in enumerate(report_names) if name.startswith("loss/")
        ]
        self._width = len(report_names)
        self._updates = updates
        self._look_every = min(updates, _LOOK_EVERY)
        self._bad = 0
        self._pending: list[LearnReport] = []

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Collects the reports, and checks each group of them."""
        if not reports or not self._columns:
            return
        self._pending.extend(reports)
        if len(self._pending) >= self._look_every:
            self._check_reports()
            if self._bad >= self._updates:
                view.request_stop(StopReason.DIVERGED)

    def state_dict(self) -> StateTree:
        """Returns the count, and for each pending report whether it is finite."""
        rows = [
            [report.updates, finite]
            for report, finite in zip(self._pending, self._read_finiteness(), strict=True)
        ]
        return {"bad": self._bad, "pending": rows}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the count and the pending reports."""
        self._bad = int(state["bad"])
        self._pending = [
            LearnReport(int(updates), [0.0 if finite else float("nan")] * self._width)
            for updates, finite in state["pending"]
        ]

    def _check_reports(self) -> None:
        for report, finite in zip(self._pending, self._read_finiteness(), strict=True):
            self._bad = 0 if finite else self._bad + report.updates
            if self._bad >= self._updates:
                break
        self._pending.clear()

    def _read_finiteness(self) -> list[bool]:
        """Returns for each pending report whether all its losses are finite, in one transfer."""
        if not self._pending:
            return []
        losses = read_values([report.values for report in self._pending])[:, self._columns]
        return [all(row) for row in np.isfinite(losses).tolist()]


class SuccessHook:
    """Ends the run once `evaluations` consecutive mean returns were at least `score`.

    Args:
        score: Mean undiscounted return.
        evaluations: Number of consecutive evaluations.
    """

    def __init__(self, score: float, evaluations: int) -> None:
        self._score = score
        self._evaluations = evaluations
        self._reached = 0

    def on_start(self, view: EngineView) -> None:
        """Requests a stop if the score was already reached before a resume."""
        self._stop_if_reached(view)

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Counts consecutive evaluations that reach the score; requests a stop if they suffice."""
        self._reached = self._reached + 1 if is_reached(self._score, result.mean) else 0
        self._stop_if_reached(view)

    def state_dict(self) -> StateTree:
        """Returns the number of consecutive evaluations that reached the score."""
        return {"reached": self._reached}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the number of consecutive evaluations that reached the score."""
        self._reached = int(state["reached"])

    def _stop_if_reached(self, view: EngineView) -> None:
        if self._reached >= self._evaluations:
            view.request_stop(StopReason.SUCCESS_SCORE)
