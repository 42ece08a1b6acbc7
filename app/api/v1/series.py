"""Curves and logs of runs."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.auth import Reader
from app.api.deps import DatabaseDep, ReadSession
from app.api.strict_body import declare_json_body
from app.domain.paging import MAX_LIMIT
from app.services.curves import curves, logs, series
from palestra.contract.names import MAX_STEP
from palestra.contract.queries import LogView, SeriesInfo, SeriesQuery, SeriesResult
from palestra.contract.views import Page

router = APIRouter(tags=["series"])

MAX_LINES = 5_000
MAX_QUERY = 262_144
"""Bytes of a query: 2,000 curves need 150,000."""


@router.post("/series:query", response_model=SeriesResult, responses={404: {}})
async def query_series(
    principal: Reader,
    body: Annotated[SeriesQuery, declare_json_body(SeriesQuery, limit=MAX_QUERY)],
    database: DatabaseDep,
) -> Response:
    """Returns curves and statistics over groups of runs on one common grid.

    The answer contains the event cursor from which to follow changes.
    """
    result = await curves.query(database, principal, body)
    content = await asyncio.to_thread(lambda: b"".join(curves.encode(result)))
    return Response(content, media_type="application/json")


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
    """Returns lines of a run's log."""
    return await logs.read(session, principal, run_id, after=after, limit=limit)
