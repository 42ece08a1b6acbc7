"""Parts that documents and definitions name."""

from collections.abc import Mapping
from typing import TypeVar

from workers.core.errors import PartNotFoundError

_Part = TypeVar("_Part")


def part_called(name: str, parts: Mapping[str, _Part], kind: str) -> _Part:
    """Returns the part of a name.

    Raises:
        PartNotFoundError: If there is none; the message lists the names that exist.
    """
    if name not in parts:
        raise PartNotFoundError(
            f"no {kind} is called {name!r}; there are {', '.join(sorted(parts))}"
        )
    return parts[name]
