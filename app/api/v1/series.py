"""Curves and logs of runs."""

import asyncio
import re
from typing import Annotated, Final

from fastapi import Depends, Query, Request, Response

from app.api.auth import Reader
from app.api.deps import DatabaseDep, ReadSession
from app.api.expensive_reads import ExpensiveRead
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.domain.paging import MAX_LIMIT
from app.services.curves import answers, curves, logs, series
from palestra.contract.names import MAX_STEP
from palestra.contract.queries import LogView, SeriesInfo, SeriesQuery, SeriesResult
from palestra.contract.views import Page

router = ResourceRouter(tags=["series"])
_TAG: Final = re.compile(r'W/"([0-9a-f]{32}(?:-arrow)?)"')
_MAX_TAGS: Final = 4_000
"""Characters of `If-None-Match` that are read."""
_JSON: Final = "application/json"

MAX_LINES = 5_000
MAX_QUERY = 262_144
"""Bytes of a query: 2,000 curves need 150,000."""


@router.post(
    "/series:query",
    dependencies=[ExpensiveRead],
    response_model=SeriesResult,
    responses={
        200: {"content": {answers.ARROW: {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "The caller has this answer: its tag was in `If-None-Match`."},
        404: {},
    },
)
async def query_series(
    principal: Reader,
    body: Annotated[SeriesQuery, Depends(JsonBody(SeriesQuery, limit=MAX_QUERY))],
    database: DatabaseDep,
    request: Request,
) -> Response:
    """Returns curves and statistics over groups of runs on one common grid.

    The answer contains the event cursor from which to follow changes. Answers about ended runs have
    an `ETag`, and 304 answers a request whose `If-None-Match` has it. `Accept:
    application/vnd.apache.arrow.stream` gives an Arrow stream.
    """
    arrow = answers.ARROW in request.headers.get("accept", "").lower()
    suffix = "-arrow" if arrow else ""
    tags = _TAG.findall(request.headers.get("if-none-match", "")[:_MAX_TAGS])
    known = [tag.removesuffix(suffix) for tag in tags if tag.endswith(suffix)]
    found = await curves.read(database, principal, body, known)
    headers = {"Vary": "Accept"}
    if found.tag is not None:
        headers["ETag"] = f'W/"{found.tag}{suffix}"'
    if found.answer is None:
        return Response(status_code=304, headers=headers)
    write = answers.encode_arrow if arrow else answers.encode_json
    content = await asyncio.to_thread(write, found.answer)
    return Response(content, headers=headers, media_type=answers.ARROW if arrow else _JSON)


@router.get("/runs/{run_id}/series")
async def list_series(
    run_id: str,
    principal: Reader,
    session: ReadSession,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items per page.")] = 100,
    cursor: Annotated[
        str, Query(max_length=128, description="`next_cursor` of the page before.")
    ] = "",
) -> Page[SeriesInfo]:
    """Lists the series of a run by name."""
    return await series.list_for_run(session, principal, run_id, after=cursor, limit=limit)


@router.get("/runs/{run_id}/log")
async def read_log(
    run_id: str,
    principal: Reader,
    session: ReadSession,
    after: Annotated[
        int, Query(ge=0, le=MAX_STEP, description="Ordinal of the last line that is known.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LINES, description="Lines per answer.")] = 1_000,
) -> LogView:
    """Returns lines of a run's log; the last page has the lines that are not complete, too."""
    return await logs.read(session, principal, run_id, after=after, limit=limit)
