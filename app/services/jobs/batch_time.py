"""How long one request may change objects: others wait for what its transaction has locked."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

_Item = TypeVar("_Item")

MAX_SECONDS: Final = 0.5
"""Seconds after which a request begins with no further object."""
LEAST: Final = 10
"""Objects that a request changes whatever they take."""


def take_in_time(
    items: Iterable[_Item], clock: Callable[[], float] = time.monotonic
) -> Iterator[_Item]:
    """Yields items until `MAX_SECONDS` have passed, but at least `LEAST`."""
    deadline = clock() + MAX_SECONDS
    for number, item in enumerate(items):
        if number >= LEAST and clock() > deadline:
            return
        yield item
