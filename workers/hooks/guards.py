"""Hooks that end a run when it diverges or succeeds."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from workers.core.protocols import EngineView
from workers.core.report_values import read_values, rows_of_updates
from workers.core.types import EvaluationResult, LearnReport, StateTree, StopReason
from workers.hooks.evaluation_hooks import is_reached

_MAX_UNREAD: Final = 50
"""Number of updates after which their values are read from the device."""
_ADVICE: Final = (
    "Check that rewards and observations are finite, lower the learning rate, or clip gradients."
)


class _Place(NamedTuple):
    """Where a value was not finite; the counters are those of the next boundary."""

    what: str
    """The series or parameter and its value, such as `loss/td was nan`."""
    env_step: int
    episode: int

    def __str__(self) -> str:
        return f"{self.what} at env_step {self.env_step:,}, episode {self.episode:,}"


class _NonFiniteUpdates:
    """Counts consecutive updates with values that are not finite.

    Args:
        limit: Number of consecutive updates that ends the run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._first: _Place | None = None
        """The first of the consecutive updates."""
        self._note: _Place | None = None
        """The first of the run, until it is recorded."""
        self._is_noted = False

    @property
    def has_begun(self) -> bool:
        """Whether the last update that was counted had values that are not finite."""
        return self._count > 0

    @property
    def reaches_limit(self) -> bool:
        """Whether the run must end."""
        return self._count >= self._limit

    @property
    def most_unread(self) -> int:
        """Number of further updates that must be read, because they may reach the limit."""
        return max(1, min(_MAX_UNREAD, self._limit - self._count))

    def add_finite(self) -> None:
        """Counts an update whose values are finite."""
        self._count, self._first = 0, None

    def add(self, updates: int, place: _Place) -> None:
        """Counts consecutive updates with values that are not finite, the first at `place`."""
        self._count += updates
        self._first = self._first or place
        if not self._is_noted:
            self._note, self._is_noted = place, True

    def record_note(self, view: EngineView) -> None:
        """Records the first place of the run, once."""
        if self._note is not None:
            view.record_note("not_finite", f"The first value that is not finite: {self._note}.")
            self._note = None

    def end_at_limit(self, view: EngineView) -> None:
        """Ends the run as diverged if the count is at the limit."""
        if self.reaches_limit:
            first = "" if self._first is None else f" The first: {self._first}."
            message = (
                f"{self._limit:,} consecutive updates had values that are not finite "
                f"(nan_guard).{first} {_ADVICE}"
            )
            view.request_stop(StopReason.DIVERGED, message)

    def state_dict(self) -> StateTree:
        """Returns the count and the places."""
        return {
            "bad": self._count,
            "first": _list_of(self._first),
            "note": _list_of(self._note),
            "is_noted": self._is_noted,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the count and the places."""
        self._count = int(state["bad"])
        self._first, self._note = _place_of(state["first"]), _place_of(state["note"])
        self._is_noted = bool(state["is_noted"])


class NanGuardHook:
    """Ends the run as diverged after consecutive updates with values that are not finite.

    Values are read in groups of updates, so that an update does not wait for the device. They are
    read as soon as the updates since the last read may reach the limit, so the run ends at the
    boundary that follows the last of them.

    Args:
        report_names: Names of the values in the agent's reports. Those that begin with `loss/` are
            checked, or all if none does.
        updates: Number of consecutive updates that ends the run.
    """

    def __init__(self, report_names: Sequence[str], updates: int) -> None:
        losses = [name for name in report_names if name.startswith("loss/")]
        self._series = losses or list(report_names)
        self._columns = [report_names.index(name) for name in self._series]
        self._counted = _NonFiniteUpdates(updates)
        self._until_read = self._counted.most_unread
        """Number of further updates after which the pending reports are read."""
        self._pending: list[tuple[int, int, Sequence[LearnReport]]] = []
        """env_steps and episodes at a boundary, and its reports."""

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Keeps the reports, and reads them when they may reach the limit."""
        if not reports:
            return
        clock = view.clock
        self._pending.append((clock.env_steps, clock.episodes, reports[:]))
        for report in reports:
            self._until_read -= report.updates
        if self._until_read <= 0:
            self._read()
            self._counted.record_note(view)
            self._counted.end_at_limit(view)

    def on_snapshot(self, view: EngineView, snapshot_id: str) -> None:
        """Records a note on the updates that were read for the snapshot, one after an error too."""
        del snapshot_id
        self._counted.record_note(view)

    def on_finish(self, view: EngineView, reason: StopReason) -> None:
        """Records a note on the last updates, which do not reach the limit."""
        del reason
        self._read()
        self._counted.record_note(view)

    def state_dict(self) -> StateTree:
        """Returns the count, and where it began."""
        self._read()
        return self._counted.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the count, and where it began."""
        self._counted.load_state_dict(state)
        self._until_read = self._counted.most_unread

    def _read(self) -> None:
        """Counts the pending updates."""
        pending, self._pending = self._pending, []
        if pending:
            self._count_all(pending)
            self._until_read = self._counted.most_unread

    def _count_all(self, pending: Sequence[tuple[int, int, Sequence[LearnReport]]]) -> None:
        rows = [
            row for *_, reports in pending for report in reports for row in rows_of_updates(report)
        ]
        values = read_values(rows)[:, self._columns]
        if np.isfinite(values).all():
            self._counted.add_finite()
            return
        row = iter(values)
        for env_step, episode, reports in pending:
            for report in reports:
                updates = report.updates if report.rows is None else 1
                for _ in rows_of_updates(report):
                    self._count(next(row), updates, env_step, episode)

    def _count(
        self, values: npt.NDArray[np.float64], updates: int, env_step: int, episode: int
    ) -> None:
        if self._counted.reaches_limit:
            return
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            what = f"{self._series[bad[0]]} was {values[bad[0]]}"
            self._counted.add(updates, _Place(what, env_step, episode))
        else:
            self._counted.add_finite()


class ParameterGuardHook:
    """Ends the run as diverged after consecutive updates with parameters that are not finite.

    This is for agents that report no values. Parameters are looked at once the updates since the
    last look may reach the limit. The updates before the first look that finds such a parameter
    are not counted, except the last one.

    Args:
        updates: Number of consecutive updates that ends the run.
        find: Returns the first parameter that is not finite and its value, such as
            `q.weight was nan`; `None` if all are finite.
        start_count: Called at the start of an attempt; returns a function that returns the number
            of updates since then. `None` if the agent reports its updates to the engine.
    """

    def __init__(
        self,
        updates: int,
        find: Callable[[], str | None],
        start_count: Callable[[], Callable[[], int]] | None = None,
    ) -> None:
        self._find, self._start_count = find, start_count
        self._counted = _NonFiniteUpdates(updates)
        self._made: Callable[[], int] | None = None
        self._seen = 0
        """Number of updates at the last look."""

    def on_start(self, view: EngineView) -> None:
        """Starts to count the updates, after the agent was restored."""
        if self._start_count is not None:
            self._made = self._start_count()
        self._seen = self._updates(view)

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Looks at the parameters when the updates since the last look may reach the limit."""
        del reports
        if self._updates(view) - self._seen >= self._counted.most_unread:
            self._look(view)
            self._counted.end_at_limit(view)

    def on_finish(self, view: EngineView, reason: StopReason) -> None:
        """Records a note on the last updates, which do not reach the limit."""
        del reason
        self._look(view)

    def state_dict(self) -> StateTree:
        """Returns the count, and where it began."""
        return self._counted.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the count, and where it began."""
        self._counted.load_state_dict(state)

    def _updates(self, view: EngineView) -> int:
        return view.clock.updates if self._made is None else self._made()

    def _look(self, view: EngineView) -> None:
        made = self._updates(view)
        updates, self._seen = made - self._seen, made
        if not updates:
            return
        what = self._find()
        if what is None:
            self._counted.add_finite()
        else:
            place = _Place(what, view.clock.env_steps, view.clock.episodes)
            self._counted.add(updates if self._counted.has_begun else 1, place)
            self._counted.record_note(view)


def _list_of(place: _Place | None) -> list[Any] | None:
    return None if place is None else list(place)


def _place_of(stored: Sequence[Any] | None) -> _Place | None:
    return None if stored is None else _Place(str(stored[0]), int(stored[1]), int(stored[2]))


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
        """Counts consecutive evaluations that reach the score; requests a stop if they suffice.

        An evaluation with episodes that were cut is none of them.
        """
        is_success = not result.cut_episodes and is_reached(self._score, result.mean)
        self._reached = self._reached + 1 if is_success else 0
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
