"""Maintenance windows and reservations of pools as they cross the API."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from palestra.contract.audit import WrittenTime
from palestra.contract.documents import Document
from palestra.contract.names import Name, Slug
from palestra.contract.views import View


class WindowKind(StrEnum):
    """What a window is for."""

    MAINTENANCE = "maintenance"
    """Nothing starts."""
    RESERVATION = "reservation"
    """Only jobs of one project or one person start."""


class PoolWindowRequest(Document):
    """A time in which workers of a pool start nothing, or only jobs of a project or a person.

    Jobs start before it only if their time limit ends before it; what runs is not stopped.
    """

    kind: WindowKind
    start: WrittenTime
    """May lie in the past: the window has begun then."""
    end: WrittenTime
    workers: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()
    """Names of workers of the pool; none stands for all workers, later ones included."""
    project: Slug | None = None
    """Whom a reservation is for: a project that the pool admits,"""
    user: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """or a person, by login name."""
    reason: Annotated[str, Field(max_length=500)] = ""
    """Everybody whose jobs wait for the pool reads it."""


class PoolWindowView(View):
    """A maintenance window or a reservation that has not ended."""

    id: str
    pool: str
    kind: WindowKind
    start: datetime
    end: datetime
    has_begun: bool
    workers: list[str]
    """Names of the workers; empty for all workers of the pool."""
    project: str | None
    """Slug of the project that a reservation is for; `null` where the caller may not read it."""
    user: str | None
    """Login name of the person that a reservation is for; for administrators and that person."""
    reason: str
    created_by: str | None
    """Login name; only for administrators of the server."""
    created_at: datetime
