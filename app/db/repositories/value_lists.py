"""Splits lists of values that are too long for one statement."""

from collections.abc import Collection
from typing import Final, TypeVar

Value = TypeVar("Value")

_MANY: Final = 500
"""Values of one IN list.

PostgreSQL turns an IN list of pairs into nested conditions; some thousands overflow its stack.
"""


def split_values(values: Collection[Value]) -> list[list[Value]]:
    """Returns the values in lists short enough for one statement."""
    every = list(values)
    return [every[first : first + _MANY] for first in range(0, len(every), _MANY)]
