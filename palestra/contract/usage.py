"""What persons and projects used of the pools, as it crosses the API."""

from datetime import datetime

from pydantic import Field

from palestra.contract.views import View


class PersonShareView(View):
    """A person's part of a pool within a project."""

    user: str
    """Login name."""
    entitled: float
    """Part of the pool, from 0 to 1: that of the project, divided by its persons with jobs in the
    queue, live jobs or usage within the period."""
    used_seconds: float
    """Device-seconds within the period."""
    used: float | None
    """Part of all device-seconds of the pool within the period; `null` if there are none."""
    decayed_seconds: float
    """Device-seconds, those of a half-life ago counted half: what the order of the queue compares,
    with the charge of live and assigned jobs."""
    decayed: float | None
    """Part of the decayed device-seconds of the pool; `null` if there are none."""


class ProjectShareView(View):
    """A project's part of a pool."""

    project: str | None
    """Slug; `null` for all projects together that the caller may not read."""
    name: str | None
    entitled: float
    """Its share, divided by the shares of all projects that the pool admits: from 0 to 1."""
    used_seconds: float
    used: float | None
    decayed_seconds: float
    decayed: float | None
    persons: list[PersonShareView] = Field(default_factory=list)
    """Its persons by login name; empty for a project that the caller may not read."""


class PoolSharesView(View):
    """What the projects of a pool are entitled to, and what they used."""

    pool: str
    at: datetime
    period_seconds: float
    """The length of the period of `used_seconds`, which ends at `at`."""
    half_life_seconds: float
    """After this time a device-second counts half in `decayed_seconds`."""
    projects: list[ProjectShareView]
    """By slug; all projects together that the caller may not read come last."""
