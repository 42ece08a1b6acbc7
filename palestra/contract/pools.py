"""Pools, their workers and slots, and enrolment tokens as they cross the API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document, Patch
from palestra.contract.names import Name, Slug, Text, Title
from palestra.contract.registration import Gpu
from palestra.contract.states import WorkerState
from palestra.contract.views import View

WallSeconds = Annotated[int, Field(ge=1, le=31_536_000)]
"""Wall time of an attempt."""

PauseReason = Annotated[str, Field(min_length=1, max_length=500)]

Share = Annotated[float, Field(gt=0, le=1_000_000)]


class PoolRequest(Document):
    """A new pool. Its name never changes, since workers and jobs name it."""

    name: Name
    description: Text = ""
    default_wall_seconds: WallSeconds | None = None
    """Wall time of an attempt of a job that names none; `null`: `max_wall_seconds`, or no limit."""
    max_wall_seconds: WallSeconds | None = None
    """Longest wall time that a job may ask for; `null` for any."""
    shows_names: bool = False
    """Whether a project sees the user and the project of other projects' jobs in the slots."""
    projects: Annotated[tuple[Slug, ...], Field(max_length=1_000)] = ()
    """Slugs of the projects that it admits from the start."""


class PoolChange(Patch):
    """A change of a pool; members that are left out stay as they are."""

    description: Text | None = None
    default_wall_seconds: WallSeconds | None = None
    """`null` removes it. Jobs that were queued before keep their limits."""
    max_wall_seconds: WallSeconds | None = None
    """`null` removes it."""
    shows_names: bool | None = None


class PoolPause(Document):
    """A pause of a pool with its reason; no job of the pool starts."""

    reason: PauseReason
    """Shown to everybody whose jobs wait."""


class PoolAdmission(Document):
    """The admission of a project to a pool, with its share."""

    share: Share = 1.0
    """Weight of the project: its part of the pool while all projects have queued jobs."""


class PoolProjectView(View):
    """A project that a pool admits."""

    project: str
    """Slug."""
    name: str
    share: float
    """Weight of the project: its part of the pool while all projects have queued jobs."""
    since: datetime


class PoolView(View):
    """A pool and its queue, as one caller sees them."""

    id: str
    name: Name
    workers: int
    """Workers that are online and not draining."""
    slots: int
    """Slots of these workers."""
    free_slots: int
    """Slots of these workers that no job of any project occupies."""
    queued: int
    """Queued jobs of the caller's projects."""
    running: int
    """Jobs of the caller's projects that hold a slot."""
    description: str
    paused_at: datetime | None
    """While set, no job of the pool starts; running ones go on."""
    pause_reason: str
    default_wall_seconds: int | None
    """Wall time of an attempt of a job that names none; `null`: `max_wall_seconds`, or no limit."""
    max_wall_seconds: int | None
    """Longest wall time that a job may ask for; `null` for any."""
    shows_names: bool
    """Whether a project sees the user and the project of other projects' jobs in the slots."""
    created_at: datetime
    projects: list[PoolProjectView]
    """The caller's projects that it admits; all projects for a caller with `server.pools`."""
    registered_workers: int
    """All its workers, offline ones included."""
    all_queued: int | None
    """Queued jobs of all projects, for who has `server.pools`; `null` for others."""
    all_running: int | None
    """Jobs of all projects that hold a slot, for who has `server.pools`; `null` for others."""


class SlotView(View):
    """A slot of a worker. An attempt on several slots is in each of them.

    If the caller may not read the project of the slot's job, only `index` and `busy` are
    set, and `user` and `project` if the pool shows names. A caller with `server.pools` always sees
    these names and `job_id`, which is needed to cancel the job. Events of workers hold only `index`
    and `busy`.
    """

    index: int
    attempt_id: str | None
    job_id: str | None
    run_ids: list[str]
    busy: bool = False
    """Whether an attempt occupies it, of whatever project."""
    user: str | None = None
    """Login name of who submitted the job; `null` for a free slot or where it is not shown."""
    project: str | None = None
    """Slug of the job's project; `null` for a free slot or where it is not shown."""


SecretRotation = Literal["pending", "unsupported"]


class WorkerView(View):
    """A worker with its state, its slots and what it reported."""

    id: str
    name: str
    pool: str
    host: str
    state: WorkerState
    version: str
    slots: list[SlotView]
    gpus: list[Gpu]
    registered_at: datetime
    last_heartbeat_at: datetime
    secret_rotation: SecretRotation | None = None
    """`null` unless a rotation is under way: `pending` from the request until the worker uses its
    new secret; `unsupported` if the worker's version takes no new secret with a heartbeat. Such a
    worker keeps its present secret until it was upgraded.
    """
    secret_since: datetime | None = None
    """When it first used its present secret; `null` if that was never rotated."""
    clock_skew_seconds: float | None = None
    """Seconds by which its clock is ahead of the server's, as of the latest heartbeat; negative if
    it is behind, `null` if the worker did not say.
    """
    has_wrong_clock: bool = False
    """Whether the clocks differ by more than five minutes: the wall times of its points are wrong,
    everything else is not affected.
    """
    drain_reason: str | None = None
    """Why it drains without a request by a user: it could not start several attempts in a row.
    `null` if a user drained it, or it does not drain.
    """


class EnrolmentTokenRequest(Document):
    """A new token with which workers enrol in a pool."""

    name: Title
    expires_in_days: Annotated[int, Field(ge=1, le=3_650)] | None
    """Needed; `null` for a token that never expires. Workers that enrolled outlive the token."""


class EnrolmentTokenView(View):
    """A token with which workers enrol in one pool. It belongs to the pool, not to a user."""

    id: str
    pool: str
    name: str
    created_by: str | None
    """Login name of who made it; `null` if that user was deleted, or it was the console."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    secret: str | None = None
    """Only in the answer that creates it."""
