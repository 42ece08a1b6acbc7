"""Lists of values too long for one statement."""

from collections.abc import Collection
from typing import Final, TypeVar

Value = TypeVar("Value")

_MANY: Final = 500
"""Values of one IN list.

PostgreSQL takes one of pairs for conditions within each other, and some thousands overflow its
stack.
"""


def cut(values: Collection[Value]) -> list[list[Value]]:
    """Returns the values in lists that a statement takes."""
    every = list(values)
    return [every[first : first + _MANY] for first in range(0, len(every), _MANY)]
