"""Means over a window of env_steps.

A window closes when a multiple of its length is crossed, never by the wall clock, and its values
are part of the saved state. So a resumed run emits its points at the same env_steps and with the
same values as a run that was not interrupted.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from workers.core.report_values import prepare_values, read_values
from workers.core.types import LearnReport, StateTree

MAX_WINDOW: Final = 1_000
POINTS_PER_BUDGET: Final = 2_000
_DEFAULT_WINDOW: Final = 500


def window_length(budget_env_steps: int | None) -> int:
    """Returns the window in env_steps over which a metric is averaged.

    It is the 2,000th part of the budget, rounded up to 1, 2 or 5 times a power of ten, at most
    1,000.

    Args:
        budget_env_steps: Budget in env_steps; `None` if it has no such bound, for a window of 500.
    """
    if budget_env_steps is None:
        return _DEFAULT_WINDOW
    wanted = min(MAX_WINDOW, -(-budget_env_steps // POINTS_PER_BUDGET))
    return next(
        length for length in (1, 2, 5, 10, 20, 50, 100, 200, 500, MAX_WINDOW) if length >= wanted
    )


class LearnWindow:
    """Collects the learn reports of a window without synchronising the device.

    Args:
        names: Series of the values of each report.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._values: list[object] = []

    def add(self, reports: Sequence[LearnReport]) -> None:
        """Stores the values of reports without synchronising the device."""
        for report in reports:
            self._values.append(report.values)

    def close(self) -> object:
        """Returns the window's values, to be passed to `means`, and begins the next window.

        Does not synchronise the device. Returns `None` if the window has no reports.
        """
        if not self._values:
            return None
        values, self._values = self._values, []
        return prepare_values(values)

    def state_dict(self) -> StateTree:
        """Returns every value of the open window.

        The mean after a restore is therefore the same to the last bit.
        """
        return {"rows": read_values(self._values, len(self._names))}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the values of the open window.

        Values that another version of the agent saved for other series are dropped.
        """
        rows = np.asarray(state["rows"])
        self._values = list(rows) if rows.shape[1:] == (len(self._names),) else []


def means(windows: Sequence[Any]) -> list[list[float]]:
    """Returns the mean of each column of each window's values; waits for the device."""
    if not windows:
        return []
    counts = np.array([len(values) for values in windows])
    rows = np.concatenate([read_values(values) for values in windows])
    averages: list[list[float]] = (
        np.add.reduceat(rows, np.cumsum(counts) - counts) / counts[:, np.newaxis]
    ).tolist()
    return averages
