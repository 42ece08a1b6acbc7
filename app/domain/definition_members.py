"""The members of a definition by path, by which lists are filtered and sorted. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

MAX_PATH: Final = 128
"""Characters of a path; members with longer ones are left out."""
MAX_TEXT: Final = 256
"""Characters of a value that are kept."""
_MAX_NUMBER: Final = 1e300


class Member(NamedTuple):
    """A member that is no object, or an empty one."""

    path: str
    text: str
    """A string as it is, another value as JSON."""
    number: float | None
    """The value if it is a number."""


def list_members(document: Mapping[str, Any], prefix: str = "") -> Iterator[Member]:
    """Yields the members of a definition, those of nested objects with dotted paths."""
    for name, value in document.items():
        path = f"{prefix}{name}"
        if len(path) > MAX_PATH:
            continue
        if isinstance(value, dict) and value:
            yield from list_members(value, f"{path}.")
            continue
        yield Member(path, write_text(value)[:MAX_TEXT], _read_number(value))


def write_text(value: Any) -> str:
    """Returns the text with which a value of a member is compared."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _read_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _MAX_NUMBER else None
