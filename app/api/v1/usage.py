"""Accounting: what was used of the pools."""

from typing import Annotated, Any

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse

from app.api.auth import Reader
from app.api.deps import DatabaseDep, ReadSession
from app.api.expensive_reads import ExpensiveRead
from app.api.resource_router import ResourceRouter
from app.services.usage import export, reports
from app.services.workers import quotas
from palestra.contract.audit import WrittenTime
from palestra.contract.quotas import OwnQuotasView
from palestra.contract.usage import UsageBucketSize, UsageKey, UsageQuery, UsageReport

router = ResourceRouter(tags=["usage"])

Text = Annotated[str | None, Query(min_length=1, max_length=128)]
_CSV: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line for each group in each part of the period.",
        "content": {"text/csv": {"schema": {"type": "string"}}},
    }
}


async def read_period(
    since: Annotated[
        WrittenTime | None, Query(description="From this time on; by default 7 days.")
    ] = None,
    until: Annotated[
        WrittenTime | None, Query(description="Before this time; by default now.")
    ] = None,
    bucket: Annotated[
        UsageBucketSize | None, Query(description="Length of the parts of the period.")
    ] = None,
) -> UsageQuery:
    """Reads the period and the length of its parts."""
    return UsageQuery(since=since, until=until, bucket=bucket)


async def read_names(
    project: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
    user: Annotated[
        str | None,
        Query(min_length=1, max_length=64, description="Login name; `me` is the caller."),
    ] = None,
    experiment: Text = None,
    environment: Text = None,
    pool: Text = None,
) -> UsageQuery:
    """Reads the names by which the usage is filtered."""
    return UsageQuery(
        project=project, user=user, experiment=experiment, environment=environment, pool=pool
    )


async def read_usage_query(
    period: Annotated[UsageQuery, Depends(read_period)],
    names: Annotated[UsageQuery, Depends(read_names)],
    by: Annotated[
        tuple[UsageKey, ...],
        Query(min_length=1, max_length=len(UsageKey), description="Grouped by all of them."),
    ] = (UsageKey.PROJECT,),
) -> UsageQuery:
    """Reads which usage to sum, and how to group it."""
    keys = tuple(dict.fromkeys(by))
    times = {"since": period.since, "until": period.until, "bucket": period.bucket}
    return names.model_copy(update={**times, "by": keys})


Wanted = Annotated[UsageQuery, Depends(read_usage_query)]


@router.get("/usage", dependencies=[ExpensiveRead])
async def report_usage(principal: Reader, session: ReadSession, wanted: Wanted) -> UsageReport:
    """Returns the usage within a period, in total and by groups.

    Members see the usage of their projects, administrators of the server that of all projects.
    Without `bucket` the period is one part.
    """
    return await reports.report(session, principal, wanted)


@router.get("/usage/quotas")
async def list_own_quotas(principal: Reader, session: ReadSession) -> OwnQuotasView:
    """Returns the quotas that limit the caller in the pools, with what is left of them."""
    return await quotas.list_own(session, principal)


@router.get("/usage:export", response_class=StreamingResponse, responses=_CSV)
async def export_usage(
    principal: Reader, database: DatabaseDep, wanted: Wanted
) -> StreamingResponse:
    """Sends the usage of `report_usage` as CSV, with all groups, ordered by time."""
    lines = await export.export(database, principal, wanted)
    headers = {"Content-Disposition": 'attachment; filename="usage.csv"'}
    return StreamingResponse(lines, headers=headers, media_type="text/csv; charset=utf-8")
