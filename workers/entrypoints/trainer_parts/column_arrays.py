"""Converts lists of values to arrays, and transforms nested dicts of arrays."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from workers.core.types import Array


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, Array]:
    """Converts a list of dicts to a dict of arrays with one row per dict.

    A key that a dict lacks becomes NaN in a column of numbers, otherwise `None`.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def map_columns(columns: Mapping[str, Any], change: Callable[[Array], Any]) -> dict[str, Any]:
    """Applies `change` to each array of a nested dict and returns the results in the same form."""
    return {
        name: map_columns(one, change) if isinstance(one, Mapping) else change(one)
        for name, one in columns.items()
    }


def rows_of(columns: Mapping[str, object], rows: slice | int) -> dict[str, Any]:
    """Returns the selected rows of each array of a nested dict."""
    return map_columns(columns, lambda column: column[rows])


def leaves_of(columns: Mapping[str, object]) -> Iterator[Any]:
    """Yields each array of a nested dict."""
    for one in columns.values():
        if isinstance(one, Mapping):
            yield from leaves_of(one)
        else:
            yield one


def concatenate_columns(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Concatenates nested dicts of arrays with the same keys along the first dimension."""
    return {
        name: concatenate_columns([part[name] for part in parts])
        if isinstance(one, Mapping)
        else np.concatenate([part[name] for part in parts])
        for name, one in parts[0].items()
    }


def _column(values: list[Any]) -> Array:
    if all(
        value is None or isinstance(value, int | float | np.number | np.bool_) for value in values
    ):
        if any(value is None for value in values):
            return np.array([np.nan if value is None else float(value) for value in values])
        return np.array(values)
    return stack_values(values)


def stack_values(values: Sequence[object]) -> Array:
    """Stacks values of the same shape to one array; other values become an array of objects."""
    shapes = {
        np.shape(value)
        if isinstance(value, np.ndarray | np.generic | int | float)
        or (isinstance(value, list | tuple) and not _is_ragged(value))
        else None
        for value in values
    }
    if len(shapes) == 1 and None not in shapes:
        array = np.array(values)
        if not array.dtype.hasobject:
            return array
    objects = np.empty(len(values), object)
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def _is_ragged(value: list[Any] | tuple[Any, ...]) -> bool:
    """Returns whether the items of a list differ in shape, so that they cannot be stacked."""
    return (
        len({np.shape(item) if not isinstance(item, list | tuple) else len(item) for item in value})
        > 1
    )
