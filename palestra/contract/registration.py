"""How a worker registers with the server and reports that it is alive."""

from typing import Annotated, Any, Literal

from pydantic import Field

from palestra.contract.catalogue import Catalogue
from palestra.contract.documents import Document
from palestra.contract.names import Name, Title
from palestra.contract.telemetry import WallTime
from palestra.contract.work_order import AttemptId, WorkerId


class Gpu(Document):
    """A GPU of a worker."""

    index: Annotated[int, Field(ge=0)]
    name: str
    uuid: str = ""
    memory_mib: Annotated[int, Field(ge=0)]


class Registration(Document):
    """The registration that a worker sends when it starts."""

    name: Title
    pool: Name | None = None
    """`null` takes the pool of the enrolment token, or the worker's present one."""
    host: Title
    boot_id: Annotated[str, Field(max_length=64)]
    pid: Annotated[int, Field(ge=1)]
    slots: Annotated[int, Field(ge=1, le=4_096)]
    takes_several_slots: bool = False
    """Whether it can start an attempt on several of its slots."""
    gpus: tuple[Gpu, ...] = ()
    work_order_versions: Annotated[tuple[int, ...], Field(min_length=1, max_length=16)]
    version: str
    """Palestra's version."""
    hardware: dict[str, Any] = Field(default_factory=dict)
    packages: dict[str, str] = Field(default_factory=dict)
    catalogue: Catalogue = Catalogue()
    enrolment: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Random number that the worker chose and keeps: the same enrolment again, whose answer was
    lost, gets the same secret. A worker that comes back with its secret needs none.
    """


class RegistrationAnswer(Document):
    """The answer to a registration: identity, queue and intervals."""

    worker_id: WorkerId
    secret: str | None = None
    """The worker's own credential for heartbeats, claims and later registrations.

    It is returned at the enrolment alone.
    """
    broker_url: str
    queue: str
    heartbeat_seconds: Annotated[float, Field(gt=0)]
    work_order_versions: tuple[int, ...]


class WorkerHeartbeat(Document):
    """The message that a worker sends periodically while it is alive."""

    live_attempts: tuple[AttemptId, ...] = ()
    """Attempts whose supervisor lives on this machine, adopted ones included.

    The server gives up an attempt that it counts on this worker and that is not among them, once it
    is too old to be a claim under way and its lease is not renewed.
    """
    dead_attempts: tuple[AttemptId, ...] = ()
    """Attempts whose supervisor has certainly ended, so that the server need not wait for the
    lease.
    """
    busy_slots: Annotated[
        tuple[Annotated[int, Field(ge=0, le=4_095)], ...], Field(max_length=4_096)
    ] = ()
    """Slots whose lock is held on the worker's machine: by an attempt, or by a claim under way."""
    wall: WallTime | None = None
    """Time at which it was sent, by which the server finds a wrong clock; `null` from workers of
    earlier versions.
    """


class WorkerHeartbeatAnswer(Document):
    """The answer to a heartbeat: the order for the worker."""

    order: Literal["continue", "drain"]
    """Whether the worker drains. Workers of earlier versions stop reading their queue then; the
    server refuses the claims of the others.
    """
    drain_reason: str | None = None
    """Why the worker drains without a request by a user. Workers of version 1 are not sent it."""
    secret: str | None = None
    """New secret of the worker, repeated until the worker uses it. The present one stays valid
    until then. Workers of version 1 are not sent it.
    """
