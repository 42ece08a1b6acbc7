"""The row of an epoch while it is filled, and the usual numbers about a batch of episodes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from workers.core.types import StateTree

Cell = float | int | str | bool
"""A number, or a word."""


class EpisodeColumns(Protocol):
    """What is needed of a batch of N steps in E episodes."""

    @property
    def rewards(self) -> npt.NDArray[np.float64]: ...
    @property
    def terminated(self) -> npt.NDArray[np.bool_]: ...
    @property
    def lengths(self) -> npt.NDArray[np.int64]: ...
    @property
    def env_infos(self) -> Mapping[str, Any]: ...


class Tabular:
    """Named values, in the order in which they were first recorded."""

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        self._prefix = ""

    def record(self, key: str, value: object) -> None:
        """Records a value; the last one under a key wins.

        Args:
            key: Its column.
            value: A number, a word, or an array or tensor of one number.

        Raises:
            TypeError: If it is none of these.
        """
        self._cells[self._prefix + key] = _cell(key, value)

    @contextmanager
    def prefix(self, text: str) -> Iterator[None]:
        """Puts a text before the keys recorded in the body."""
        before, self._prefix = self._prefix, self._prefix + text
        try:
            yield
        finally:
            self._prefix = before

    def row(self) -> dict[str, Cell]:
        """Returns what was recorded since the last `clear`."""
        return dict(self._cells)

    def clear(self) -> None:
        """Forgets all values."""
        self._cells.clear()

    def state_dict(self) -> StateTree:
        """Returns the values of the running row."""
        return {"cells": [[key, value] for key, value in self._cells.items()]}

    def load_state_dict(self, state: StateTree) -> None:
        """Takes the values of a running row over."""
        self._cells = dict(state["cells"])


def performance(
    itr: int, batch: EpisodeColumns, discount: float
) -> tuple[dict[str, Cell], list[float]]:
    """Returns the usual numbers about a batch, and the undiscounted return of each episode.

    `SuccessRate` is there only where `env_infos` names `success`: an episode succeeded if any of
    its steps did. `StdReturn` is that of the population. Names as in garage's `log_performance`.
    """
    returns, discounted, ends, successes = [], [], [], []
    begin = 0
    for length in batch.lengths.tolist():
        rewards = batch.rewards[begin : begin + length]
        returns.append(float(rewards.sum()))
        discounted.append(float((rewards * discount ** np.arange(length)).sum()))
        ends.append(bool(batch.terminated[begin + length - 1]))
        successes.append(_succeeded(batch, slice(begin, begin + length)))
        begin += length
    row: dict[str, Cell] = {
        "Iteration": itr,
        "NumEpisodes": len(returns),
        "AverageDiscountedReturn": float(np.mean(discounted)),
        "AverageReturn": float(np.mean(returns)),
        "StdReturn": float(np.std(returns)),
        "MaxReturn": max(returns),
        "MinReturn": min(returns),
        "TerminationRate": float(np.mean(ends)),
    }
    if "success" in batch.env_infos:
        row["SuccessRate"] = float(np.mean(successes))
    return row, returns


def _succeeded(batch: EpisodeColumns, steps: slice) -> bool:
    if "success" not in batch.env_infos:
        return False
    values = [
        value
        for value in batch.env_infos["success"][steps]
        if value is not None and value == value  # noqa: PLR0124 - NaN is not itself
    ]
    return any(bool(value) for value in values)


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
    raise TypeError(f"{key}: a column takes a number or a word, not a {type(value).__qualname__}")
