"""Which requests read and change nothing, and which answers are made while they are sent."""

from typing import Final

from starlette.types import Scope

_QUERIES: Final = frozenset(
    {"/api/v1/series:query", "/api/v1/statistics:aggregate", "/api/v1/runs:compare"}
)
"""Paths whose POST reads."""
_STREAMED: Final = ("/events", ":export", "/archive")
"""Ends of the paths whose answers are made while they are sent: nothing is known before."""


def is_read(scope: Scope) -> bool:
    """Returns whether a request reads."""
    return scope["method"] == "GET" or scope["path"] in _QUERIES


def is_streamed(path: str) -> bool:
    """Returns whether the answer at a path is made while it is sent."""
    return path.endswith(_STREAMED)
