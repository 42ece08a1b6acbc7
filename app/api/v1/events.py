"""The event log as a live stream."""

from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response

from app.api.auth import LimitedToProject, Reader
from app.api.deps import get_database
from app.api.errors import build_invalid
from app.api.resource_router import ResourceRouter
from app.api.stream import EventStream
from app.api.strict_body import JsonBody
from app.services import pools
from app.services.access import stream_scopes
from app.services.events import polls
from app.services.events.filters import StreamFilter
from app.services.events.hub import EventHub
from palestra.contract.event_streams import (
    EventPollRequest,
    EventStreamRequest,
    EventType,
    PolledEvents,
)
from palestra.contract.names import MAX_STEP

router = ResourceRouter(tags=["events"])
limited_router = ResourceRouter(tags=["events"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

MAX_FILTERS = 100
MAX_REQUEST = 1_048_576
"""Bytes of a request: 64 subscriptions with 200 IDs each need 600,000."""

Names = Annotated[list[Annotated[str, Query(max_length=128)]], Query(max_length=MAX_FILTERS)]

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
}


async def _stream_filter(
    request: Request,
    principal: Reader,
    run: Names = [],  # noqa: B006 - FastAPI copies defaults
    experiment: Names = [],  # noqa: B006
    kind: Annotated[list[EventType], Query(alias="type", max_length=MAX_FILTERS)] = [],  # noqa: B006
) -> StreamFilter:
    async with get_database(request).read() as session:
        visible = await pools.list_visible_names(session, principal)
    return StreamFilter(
        project_ids=principal.project_ids,
        pools=visible,
        only_project=min(principal.project_ids) if principal.is_within_project else None,
        runs=frozenset(run),
        experiments=frozenset(experiment),
        types=frozenset(kind),
    )


@limited_router.get("/events", response_class=Response, responses=_STREAM)
async def tail_events(
    request: Request,
    stream_filter: Annotated[StreamFilter, Depends(_stream_filter)],
    principal: Reader,
    after: Annotated[
        int | None,
        Query(
            ge=0,
            le=MAX_STEP,
            description="Cursor: the stream begins after this event. None begins now.",
        ),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID", description="Sent by browsers; takes precedence over `after`."
        ),
    ] = None,
) -> Response:
    """Streams events after a cursor: `id` is the cursor, `event` the type, `data` an `EventView`.

    A comment with the cursor that the stream has reached comes first, and after 15 s without an
    event. The event `resync` means that the log no longer holds the events after the cursor: load
    the history again.
    """
    hub: EventHub = request.app.state.hub
    cursor = after if last_event_id is None else _cursor(last_event_id)
    return EventStream(hub, [stream_filter], principal, after=[cursor]).reserve()


def _cursor(text: str) -> int:
    if (
        not text.isascii()
        or not text.isdecimal()
        or len(text) > len(str(MAX_STEP))
        or int(text) > MAX_STEP
    ):
        raise build_invalid(
            "header/Last-Event-ID", "invalid_cursor", "must be the id of an event", status=400
        )
    return int(text)


@router.post("/events:stream", response_class=Response, responses={**_STREAM, 404: {}})
async def stream_events(
    request: Request,
    principal: Reader,
    body: Annotated[EventStreamRequest, Depends(JsonBody(EventStreamRequest, limit=MAX_REQUEST))],
) -> Response:
    """Streams the events of several scopes on one connection, each after its own cursor.

    The first line of `data` holds the numbers of the subscriptions that the event belongs to, from
    0 and separated by commas; the second line is the `EventView`. The data of the event `cursors`
    are the cursors that the subscriptions have reached; it comes first, and after 15 s without
    another event. `resync` names the subscriptions whose history has to be loaded again.
    """
    filters = await stream_scopes.build_filters(
        get_database(request), principal, body.subscriptions
    )
    after = [one.after for one in body.subscriptions]
    hub: EventHub = request.app.state.hub
    return EventStream(hub, filters, principal, after=after, numbered=True).reserve()


@router.post(
    "/events:poll",
    response_model=PolledEvents,
    responses={404: {}},
)
async def poll_events(
    request: Request,
    principal: Reader,
    body: Annotated[EventPollRequest, Depends(JsonBody(EventPollRequest, limit=MAX_REQUEST))],
) -> Response:
    """Returns the next events of several scopes, waiting for the first.

    For clients that cannot read streams. Polls that wait count as streams. Send the returned
    cursors with the next poll.
    """
    filters = await stream_scopes.build_filters(
        get_database(request), principal, body.subscriptions
    )
    after = [one.after for one in body.subscriptions]
    hub: EventHub = request.app.state.hub
    content = await polls.poll(hub, filters, principal, after=after, seconds=body.wait)
    return Response(content, media_type="application/json")
