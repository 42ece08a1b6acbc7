"""The row of the current epoch, and garage's statistics of a batch of episodes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.column_arrays import rows_of
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch

Cell = float | int | str | bool
"""A number or text."""


class Tabular:
    """Named values, in the order in which they were first recorded."""

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        self._prefix = ""

    def record(self, key: str, value: object) -> None:
        """Records a value, which replaces an earlier one with the same key.

        Args:
            key: Name of the column, to which the current prefix is added.
            value: A number, text, or an array or tensor of one element.

        Raises:
            TypeError: If the value has another type or more than one element.
        """
        self._cells[self._prefix + key] = _cell(key, value)

    def record_row(self, row: Mapping[str, object]) -> None:
        """Records each value of a row; see `record`."""
        for key, value in row.items():
            self.record(key, value)

    @contextmanager
    def prefix(self, text: str) -> Iterator[None]:
        """Adds a prefix to the keys that are recorded in the body."""
        before, self._prefix = self._prefix, self._prefix + text
        try:
            yield
        finally:
            self._prefix = before

    def row(self) -> dict[str, Cell]:
        """Returns a copy of the values that were recorded since the last `clear`."""
        return dict(self._cells)

    def clear(self) -> None:
        """Removes all values."""
        self._cells.clear()

    def state_dict(self) -> StateTree:
        """Returns the values of the current row, in their order."""
        return {"cells": [[key, value] for key, value in self._cells.items()]}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the values of the current row."""
        self._cells = dict(state["cells"])


def performance_statistics(
    itr: int, batch: EpisodeBatch, discount: float
) -> tuple[dict[str, Cell], list[float]]:
    """Returns garage's statistics of a batch, and the undiscounted return of each episode.

    The names are those of garage's `log_performance`. `StdReturn` is the population standard
    deviation. `SuccessRate` exists only if `env_infos` has `success`; an episode is successful if
    `success` is true in any of its steps.
    """
    episodes, returns = list(batch.slices()), batch.returns.tolist()
    discounted = [
        (batch.rewards[steps] * discount ** np.arange(steps.stop - steps.start)).sum()
        for steps in episodes
    ]
    row: dict[str, Cell] = {
        "Iteration": itr,
        "NumEpisodes": len(returns),
        "AverageDiscountedReturn": float(np.mean(discounted)),
        "AverageReturn": float(np.mean(returns)),
        "StdReturn": float(np.std(returns)),
        "MaxReturn": max(returns),
        "MinReturn": min(returns),
        "TerminationRate": float(np.mean([batch.terminated[steps.stop - 1] for steps in episodes])),
    }
    if "success" in batch.env_infos:
        row["SuccessRate"] = float(np.mean([_has_succeeded(batch, steps) for steps in episodes]))
    return row, returns


def _has_succeeded(batch: EpisodeBatch, steps: slice) -> bool:
    return any(
        bool(value)
        for value in rows_of(batch.env_infos, steps)["success"]
        if value is not None and value == value  # noqa: PLR0124 - NaN is not itself
    )


def _cell(key: str, value: Any) -> Cell:
    if isinstance(value, bool | int | float | str):
        return value
    if callable(item := getattr(value, "item", None)):
        try:
            single: Cell = item()
        except (RuntimeError, ValueError) as error:
            raise TypeError(
                f"{key}: a column takes one number, not an array of shape {tuple(value.shape)}"
            ) from error
        return single
    raise TypeError(f"{key}: a column takes a number or text, not a {type(value).__qualname__}")
