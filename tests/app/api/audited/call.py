"""One call of a mutating route, with the audit entry that it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

IN_PROJECT: dict[str, Any] = {"in_project": "{project_id}"}
"""Entries about objects of the project `default`."""


@dataclass(frozen=True, kw_only=True)
class AuditedCall:
    """A successful request, and the audit entry that it leaves.

    Texts such as `{pool}` are replaced by the values that earlier answers gave.
    """

    route: str
    action: str
    about: str
    """ID of the entry's object."""
    who: str = "user"
    at: Mapping[str, str] = field(default_factory=dict)
    """Path parameters that differ from the values of the same name."""
    query: str = ""
    body: Any = None
    in_project: str = ""
    """The project that the entry names."""
    keeps: Mapping[str, str] = field(default_factory=dict)
    """Names of values, and where the answer has them, for example `items.0.id`."""
