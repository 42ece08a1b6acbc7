"""Looks up parts, such as model functions, by the names that definitions use."""

from collections.abc import Mapping
from typing import TypeVar

from workers.core.errors import PartNotFoundError

_Part = TypeVar("_Part")


def find_part(name: str, parts: Mapping[str, _Part], kind: str) -> _Part:
    """Returns `parts[name]`.

    Args:
        name: Name of the part.
        parts: The parts by name.
        kind: Kind of part, for the error message.

    Raises:
        PartNotFoundError: If the name is unknown; the message lists the known names.
    """
    if name not in parts:
        raise PartNotFoundError(
            f"no {kind} is called {name!r}; there are {', '.join(sorted(parts))}"
        )
    return parts[name]
