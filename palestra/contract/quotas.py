"""Quotas of a project and its persons in a pool: limits, what they count, and what is left."""

from typing import Annotated

from pydantic import Field

from palestra.contract.documents import Patch
from palestra.contract.names import Name
from palestra.contract.views import View

MaxJobs = Annotated[int, Field(ge=0, le=10_000_000)]
DeviceHours = Annotated[float, Field(ge=0, le=1e9)]


class QuotaLimits(Patch):
    """Limits in a pool; `null` removes a limit, and members that are left out stay as they are."""

    queued: MaxJobs | None = None
    """Jobs that wait in the queue; a submission beyond it is refused. Without this limit a person
    has 10,000 in each pool and project."""
    running: MaxJobs | None = None
    """Jobs that run at the same time; further ones wait."""
    device_hours: DeviceHours | None = None
    """GPU-hours, or slot-hours of jobs without a GPU, within the last 7 days; once they are used,
    queued jobs wait, and running ones go on."""


class QuotaChange(Patch):
    """A change of the quotas of a project in a pool."""

    project: QuotaLimits | None = None
    """Of the project with all its persons."""
    each_person: QuotaLimits | None = None
    """Of each person in the project who has no limits of their own."""
    persons: Annotated[dict[Name, QuotaLimits | None], Field(max_length=1_000)] = Field(
        default_factory=dict
    )
    """By login name: limits of single persons, which replace those of each person; `null` ends
    them."""


class QuotaView(View):
    """Limits, or the remaining amounts; `null` for no limit."""

    queued: int | None
    running: int | None
    device_hours: float | None


class QuotaUseView(View):
    """The amounts that quotas count."""

    queued: int
    """Jobs that wait in the queue."""
    running: int
    """Jobs that are assigned to a worker or run."""
    device_hours: float
    """Device-hours within the period."""


class QuotaStateView(View):
    """Limits, with the used and the remaining amounts."""

    limits: QuotaView
    used: QuotaUseView
    left: QuotaView


class PersonQuotaView(QuotaStateView):
    """The limits of a person in a project."""

    user: str
    """Login name."""
    has_own_limits: bool
    """Whether they replace those of each person."""


class OwnQuotaView(View):
    """Limits of the caller and of a project of the caller in a pool."""

    pool: str
    project: str
    """Slug."""
    of_person: QuotaStateView
    """Of the caller in the project."""
    of_project: QuotaStateView
    """Of the project with all its persons."""


class OwnQuotasView(View):
    """The quotas that limit the caller: only pools and projects in which there is a limit."""

    period_seconds: float
    """Length of the period, which ends now, of the device-hours."""
    items: list[OwnQuotaView]
    """By pool and project."""


class ProjectQuotasView(View):
    """The quotas of a project in a pool."""

    pool: str
    project: str
    """Slug."""
    period_seconds: float
    """Length of the period, which ends now, of the device-hours."""
    of_project: QuotaStateView
    """Of the project with all its persons."""
    each_person: QuotaView
    """Limits of each person who has no limits of their own."""
    persons: list[PersonQuotaView]
    """The members of the project, with what each uses."""
