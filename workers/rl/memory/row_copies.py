"""Copies of sampled rows of a replay memory, and the check of rows that are restored into one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from workers.core.types import Array, StateTree
from workers.rl.memory.sampling_rules import Places


class RowCopies:
    """Preallocated arrays for copies of sampled rows.

    Each call of `fill` returns the same arrays, so that a caller can wrap them in tensors once.

    Args:
        row: Structured dtype of one row.
        shape: Shape of the arrays, such as [U, N].
    """

    def __init__(self, row: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.shape, rows = shape, np.empty(shape, row)
        self._bytes = rows.view(np.dtype((np.void, row.itemsize)))
        self._columns = {name: rows[name] for name in row.names or ()}

    def fill(self, table: Array, places: Places) -> Mapping[str, Array]:
        """Copies the rows at `places` of `table` and returns the columns of the copy by field.

        Args:
            table: The rows as raw bytes (`np.void`), which copies three times as fast as records.
            places: Indices of rows, of the shape of the arrays.
        """
        # No place is out of range; checking that (mode="raise") would copy everything twice.
        table.take(places, out=self._bytes, mode="clip")
        return self._columns


def check_stored_rows(
    state: StateTree, filled: int, own_steps: int, columns: Mapping[str, Array]
) -> None:
    """Checks that the rows of a stored memory fit into another memory.

    Args:
        state: The state of the stored memory.
        filled: Rows per environment that the stored memory should contain.
        own_steps: Maximum number of rows per environment of the memory that is restored.
        columns: Arrays by field of the memory that is restored.

    Raises:
        ValueError: If capacity, fields or the number of rows differ.
    """
    steps, fields = (
        state["steps"],
        {name: (column.shape[1:], column.dtype) for name, column in columns.items()},
    )
    if steps != own_steps:
        raise ValueError(
            f"the stored memory keeps {steps} rows of each environment, this one "
            f"{own_steps}: give it the same capacity"
        )
    given = {name: (row.shape[1:], row.dtype) for name, row in state["rows"].items()}
    if given != fields:
        differing = sorted(
            name for name in {*given, *fields} if given.get(name) != fields.get(name)
        )
        differences = "; ".join(
            f"{name} is {field_text(given.get(name))}, here {field_text(fields.get(name))}"
            for name in differing
        )
        raise ValueError(f"the stored memory has other fields than this one: {differences}")
    lengths = {len(row) for row in state["rows"].values()}
    if lengths != {filled}:
        raise ValueError(
            f"the stored memory is incomplete: it holds {sorted(lengths)} rows of its fields, "
            f"{filled} were written"
        )


def field_text(field: tuple[tuple[int, ...], np.dtype[Any]] | None) -> str:
    """Returns the dtype and shape of a field as text, or `absent`."""
    return "absent" if field is None else f"{field[1]} {list(field[0])}"
