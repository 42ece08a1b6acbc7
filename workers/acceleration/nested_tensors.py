"""Nested tuples of tensors, such as the state that an update replaces."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from torch import Tensor

S = TypeVar("S")


def map_tensors(function: Callable[..., Tensor], *states: S) -> S:
    """Applies `function` to the tensors at the same place of each of `states`.

    Returns a state of the same structure.
    """
    first: Any = states[0]
    if isinstance(first, Tensor):
        return cast("S", function(*states))
    every: tuple[object, ...] = states
    fields = (map_tensors(function, *parts) for parts in zip(*every, strict=True))
    result: S = type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)  # type: ignore[assignment]
    return result
