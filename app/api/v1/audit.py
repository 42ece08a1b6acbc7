"""The audit log: search and export."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse

from app.api.auth import AuditReader, LimitedToProject
from app.api.deps import DatabaseDep, ReadSession
from app.api.paging import Cursor, Limit
from app.api.resource_router import ResourceRouter
from app.domain.paging import PageRequest
from app.services.audit import search
from app.services.audit.search import AuditFilter
from palestra.contract.audit import AuditEntry, AuditOutcome, WrittenTime
from palestra.contract.views import Page

limited_router = ResourceRouter(tags=["audit"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

Text = Annotated[str | None, Query(max_length=200)]
Since = Annotated[WrittenTime | None, Query(description="From this time on.")]
Until = Annotated[WrittenTime | None, Query(description="Before this time.")]
_LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One `AuditEntry` per line.",
        "content": {"application/jsonl": {"schema": {"type": "string"}}},
    }
}


async def read_period(
    since: Since = None, until: Until = None
) -> tuple[datetime | None, datetime | None]:
    """Reads the start and the end of the searched period."""
    return since, until


async def read_audit_filter(
    times: Annotated[tuple[datetime | None, datetime | None], Depends(read_period)],
    user: Annotated[str | None, Query(max_length=64, description="ID or name of a user.")] = None,
    object_type: Text = None,
    object_id: Text = None,
    action: Annotated[
        str | None, Query(max_length=64, description="The action, or what it begins with.")
    ] = None,
    outcome: AuditOutcome | None = None,
) -> AuditFilter:
    """Reads which entries to return."""
    return AuditFilter(
        user=user,
        object_type=object_type,
        object_id=object_id,
        action=action,
        outcome=outcome,
        since=times[0],
        until=times[1],
    )


Wanted = Annotated[AuditFilter, Depends(read_audit_filter)]


@limited_router.get("/audit")
async def search_audit(
    principal: AuditReader,
    session: ReadSession,
    wanted: Wanted,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditEntry]:
    """Lists entries of the audit log, the newest first."""
    page = PageRequest(limit=limit, cursor=cursor, sort=search.SORT)
    return await search.search(session, principal, wanted, page)


@limited_router.get("/audit:export", response_class=StreamingResponse, responses=_LINES)
async def export_audit(
    principal: AuditReader, database: DatabaseDep, wanted: Wanted
) -> StreamingResponse:
    """Sends entries of the audit log as JSON lines, the oldest first."""
    lines = search.export(database, principal, wanted)
    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(lines, headers=headers, media_type="application/jsonl")
