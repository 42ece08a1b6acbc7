"""Exports of points, episodes, evaluations and epochs as files."""

import re
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse

from app.api.auth import LimitedToProject, Reader
from app.api.closing_response import ClosingResponse
from app.api.deps import DatabaseDep
from app.api.resource_router import ResourceRouter
from app.services.curves import record_exports
from app.services.curves.record_exports import RunningExports
from palestra.contract.names import SeriesName
from palestra.contract.queries import CurveAxis
from palestra.contract.record_exports import (
    MAX_NAMED,
    MEDIA_TYPES,
    ColumnName,
    ExperimentId,
    RecordFormat,
    RecordKind,
    RecordQuery,
)
from palestra.contract.telemetry import RunId

limited_router = ResourceRouter(tags=["series"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

_FILE_NAMES: Final = {"csv": "csv", "parquet": "parquet", "arrow": "arrows"}
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, sent while it is made.",
        "content": {
            media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media_type in MEDIA_TYPES.values()
        },
    },
    404: {},
}
# A query parameter that may be repeated is declared as a list with a default (`app.api.query`).
Runs = Annotated[list[RunId], Query(alias="run", max_length=MAX_NAMED, description="Runs.")]
Experiments = Annotated[
    list[ExperimentId],
    Query(alias="experiment", max_length=MAX_NAMED, description="Experiments: all their runs."),
]
Names = Annotated[
    list[SeriesName],
    Query(alias="series", max_length=MAX_NAMED, description="Series of points; all by default."),
]
Columns = Annotated[
    list[ColumnName],
    Query(alias="column", max_length=64, description="Columns in order; all by default."),
]
Start = Annotated[
    float | None, Query(allow_inf_nan=False, description="Lower end of the range on x, inclusive.")
]
End = Annotated[
    float | None, Query(allow_inf_nan=False, description="Upper end of the range, inclusive.")
]


async def read_range(
    x: Annotated[CurveAxis, Query(description="Axis of start and end.")] = "env_step",
    start: Start = None,
    end: End = None,
) -> tuple[CurveAxis, float | None, float | None]:
    """Reads the range of the exported rows."""
    return x, start, end


async def read_runs(
    runs: Runs = [],  # noqa: B006 - FastAPI copies it
    experiments: Experiments = [],  # noqa: B006
) -> tuple[list[str], list[str]]:
    """Reads the runs and the experiments to export."""
    return runs, experiments


async def read_record_query(
    selected: Annotated[tuple[list[str], list[str]], Depends(read_runs)],
    rows: Annotated[tuple[CurveAxis, float | None, float | None], Depends(read_range)],
    kind: RecordKind = "points",
    series: Names = [],  # noqa: B006 - FastAPI copies it
    columns: Columns = [],  # noqa: B006
    superseded: Annotated[
        bool, Query(description="Whether to include what later attempts superseded.")
    ] = False,
) -> RecordQuery:
    """Reads which records to export."""
    return RecordQuery(
        kind=kind,
        runs=tuple(selected[0]),
        experiments=tuple(selected[1]),
        series=tuple(series),
        columns=tuple(columns),
        x=rows[0],
        start=rows[1],
        end=rows[2],
        superseded=superseded,
    )


@limited_router.get("/records:export", response_class=StreamingResponse, responses=_FILES)
async def export_records(
    principal: Reader,
    database: DatabaseDep,
    wanted: Annotated[RecordQuery, Depends(read_record_query)],
    request: Request,
    form: Annotated[RecordFormat, Query(alias="format")] = "csv",
) -> StreamingResponse:
    """Sends all points, episodes, evaluations or epochs of runs as CSV, Parquet or Arrow stream.

    Each run is exported as it is when its turn comes. A connection that breaks before the end of
    the file means that the file is incomplete.
    """
    running: RunningExports = request.app.state.running_exports
    export = await record_exports.export(database, principal, wanted, form, running)
    named = [*wanted.runs, *wanted.experiments]
    name = f"{named[0]}-{wanted.kind}" if len(named) == 1 else wanted.kind
    headers = {
        "Content-Disposition": f'attachment; filename="{_clean(name)}.{_FILE_NAMES[form]}"',
        "Cache-Control": "no-store",
    }
    return ClosingResponse(export.read(), headers, export.close, media_type=MEDIA_TYPES[form])


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
