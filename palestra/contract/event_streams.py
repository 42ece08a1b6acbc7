"""Requests for many scopes of the event log on one connection, and the answers of long polls."""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.names import MAX_STEP
from palestra.contract.queries import EventView
from palestra.contract.views import View

EventType = Literal[
    "experiment",
    "run",
    "job",
    "attempt",
    "worker",
    "pool",
    "snapshot",
    "artifact",
    "evaluation",
    "points",
    "log",
    "stats",
    "moved",
]

MAX_SUBSCRIPTIONS = 64
MAX_NAMES = 100
MAX_POLL_SECONDS = 30.0

_Name = Annotated[str, Field(min_length=1, max_length=128)]


class SubscriptionRequest(Document):
    """One scope of a connection, with the cursor that its reader has reached."""

    project: Annotated[str, Field(max_length=64)] | None = None
    """Slug; `null` follows all projects that the caller may read."""
    runs: Annotated[tuple[_Name, ...], Field(max_length=MAX_NAMES)] = ()
    """IDs of runs; empty follows all."""
    experiments: Annotated[tuple[_Name, ...], Field(max_length=MAX_NAMES)] = ()
    types: Annotated[tuple[EventType, ...], Field(max_length=MAX_NAMES)] = ()
    """Types of events; empty follows all."""
    after: Annotated[int, Field(ge=0, le=MAX_STEP)] | None = None
    """Cursor: the events after it are sent; `null` begins now."""


class EventStreamRequest(Document):
    """The scopes that one stream follows."""

    subscriptions: Annotated[
        tuple[SubscriptionRequest, ...], Field(min_length=1, max_length=MAX_SUBSCRIPTIONS)
    ]


class EventPollRequest(EventStreamRequest):
    """The scopes of which a long poll returns the next events."""

    wait: Annotated[float, Field(ge=0, le=MAX_POLL_SECONDS)] = 25.0
    """Seconds to wait for the first event."""


class PolledEvent(View):
    """An event with the numbers of the subscriptions that it belongs to."""

    subscriptions: list[int]
    """Numbers from 0, in the order of the request."""
    event: EventView


class PolledEvents(View):
    """The answer of a long poll."""

    events: list[PolledEvent]
    """Empty if none came in time."""
    cursors: list[int]
    """The cursor of each subscription, to be sent as `after` of the next poll."""
    resync: list[int]
    """Numbers of subscriptions whose events after the cursor the log no longer holds: load their
    history again."""
