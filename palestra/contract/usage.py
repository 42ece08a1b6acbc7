"""What persons and projects used of the pools, as it crosses the API."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from palestra.contract.audit import WrittenTime
from palestra.contract.documents import Document
from palestra.contract.views import View


class PersonShareView(View):
    """The share and the usage of a person in a project of a pool."""

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
    """The share and the usage of a project of a pool."""

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
    """The shares and the usage of the projects of a pool."""

    pool: str
    at: datetime
    period_seconds: float
    """The length of the period of `used_seconds`, which ends at `at`."""
    half_life_seconds: float
    """After this time a device-second counts half in `decayed_seconds`."""
    projects: list[ProjectShareView]
    """By slug; all projects together that the caller may not read come last."""


class UsageKey(StrEnum):
    """The keys by which usage can be grouped."""

    PROJECT = "project"
    USER = "user"
    EXPERIMENT = "experiment"
    ENVIRONMENT = "environment"
    POOL = "pool"


class UsageBucketSize(StrEnum):
    """Length of the parts into which a period is divided.

    Days begin at midnight UTC, weeks on Mondays.
    """

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


UsageName = Annotated[str, Field(min_length=1, max_length=128)]


class UsageQuery(Document):
    """A query of usage: filters, of which `None` takes all, and keys to group by."""

    by: Annotated[tuple[UsageKey, ...], Field(min_length=1, max_length=5)] = (UsageKey.PROJECT,)
    """Grouped by all of them."""
    bucket: UsageBucketSize | None = None
    """`None` does not divide the period."""
    since: WrittenTime | None = None
    """By default 7 days before `until`."""
    until: WrittenTime | None = None
    """Exclusive; by default now."""
    project: UsageName | None = None
    """Slug."""
    user: UsageName | None = None
    """Login name; `me` is the caller."""
    experiment: UsageName | None = None
    """ID."""
    environment: UsageName | None = None
    pool: UsageName | None = None


class UsageAmount(View):
    """Device-seconds: GPU-seconds of jobs with GPUs, slot-seconds of jobs without."""

    used_seconds: float = 0.0
    """What attempts used whose work counts, with what live attempts used so far."""
    gpu_seconds: float = 0.0
    """The part of `used_seconds` that GPUs were used for."""
    lost_seconds: float = 0.0
    """Waste: what has to be done again, since a machine or a network failed. Charged to nobody."""


class UsageBucket(UsageAmount):
    """Device-seconds of a group within one part of the period."""

    start: datetime


class UsageGroup(UsageAmount):
    """Device-seconds of one group; the keys of the grouping are set, the others are not."""

    project: str | None = None
    """Slug."""
    user: str | None = None
    """Login name."""
    experiment: str | None = None
    environment: str | None = None
    """`null` also for supervised experiments, which have none."""
    pool: str | None = None
    buckets: list[UsageBucket] = Field(default_factory=list)
    """The parts of the period in which something was used or lost, in their order."""


class OccupancyBucket(View):
    """Occupancy of the slots of a pool in one part of the period.

    A part without recorded samples is missing.
    """

    start: datetime
    recorded_seconds: float = 0.0
    """Seconds of which the numbers below are known: a server ran and recorded them."""
    slot_seconds: float = 0.0
    """Slots of workers that were online and not draining."""
    busy_seconds: float = 0.0
    """Slots that jobs occupied or were assigned to."""
    idle_waiting_seconds: float = 0.0
    """Free slots beside queued jobs that fitted them, whatever held these: a pause, a limit, or the
    time until they were told to start."""


class PoolOccupancy(View):
    """Occupancy of the slots of a pool in the period, by whole hours."""

    pool: str
    recorded_seconds: float
    slot_seconds: float
    busy_seconds: float
    idle_waiting_seconds: float
    buckets: list[OccupancyBucket]


class UsageReport(UsageAmount):
    """The usage within a period, as far as the caller may read it.

    Its own numbers are the sum of all groups.
    """

    at: datetime
    """Until when live attempts are counted."""
    since: datetime
    until: datetime
    by: list[UsageKey]
    bucket: UsageBucketSize | None
    starts: list[datetime]
    """Start of each part of the period."""
    groups: list[UsageGroup]
    """Those that used or lost most, first."""
    rest: UsageGroup | None
    """All further groups together; `null` if there are none."""
    rest_groups: int
    """Number of groups in `rest`."""
    pools: list[PoolOccupancy]
    """The pools that the caller sees, by name."""
