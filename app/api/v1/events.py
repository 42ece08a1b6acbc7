"""The event log as a live stream."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from app.api.auth import Reader
from app.api.deps import get_database
from app.api.errors import build_invalid
from app.api.stream import EventStream
from app.services import pools
from app.services.events.event_log import EventType
from app.services.events.hub import EventHub, StreamFilter
from palestra.contract.names import MAX_STEP

project_router = APIRouter(tags=["events"])
"""Routes that exist for all projects, and below `/projects/{project}` for one."""

MAX_FILTERS = 100

Names = Annotated[list[Annotated[str, Query(max_length=128)]], Query(max_length=MAX_FILTERS)]

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    400: {},
    429: {},
    503: {},
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


@project_router.get("/events", response_class=Response, responses=_STREAM)
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

    A comment comes every 15 s. The event `resync` means that the log no longer holds the
    events after the cursor: load the history again.
    """
    hub: EventHub = request.app.state.hub
    cursor = after if last_event_id is None else _cursor(last_event_id)
    return EventStream(hub, stream_filter, principal, after=cursor).reserve()


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
