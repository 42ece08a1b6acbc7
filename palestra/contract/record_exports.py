"""Exports of what runs recorded: which records, of which runs, in which form."""

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, StringConstraints

from palestra.contract.documents import Document
from palestra.contract.names import SeriesName
from palestra.contract.queries import CurveAxis
from palestra.contract.telemetry import RunId

RecordKind = Literal["points", "episodes", "evaluations", "epochs"]
"""What an export holds: one row per point of a series, training episode, evaluation or epoch."""
RecordFormat = Literal["csv", "parquet", "arrow"]
"""Form of an export; `arrow` is an Arrow IPC stream."""

MEDIA_TYPES: Final[dict[RecordFormat, str]] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
MAX_NAMED: Final = 200
"""Runs, experiments or series that one export may name: they are part of the request's address."""

ExperimentId = Annotated[str, StringConstraints(max_length=128)]
ColumnName = Annotated[str, StringConstraints(pattern=r"^[a-z_]+$", max_length=64)]


class RecordQuery(Document):
    """Which records to export.

    Rows are in the order of the runs, then of the names of series, then in the order in which the
    attempts recorded them.
    """

    kind: RecordKind = "points"
    runs: Annotated[tuple[RunId, ...], Field(max_length=MAX_NAMED)] = ()
    experiments: Annotated[tuple[ExperimentId, ...], Field(max_length=MAX_NAMED)] = ()
    """Experiments whose runs are added to `runs`."""
    series: Annotated[tuple[SeriesName, ...], Field(max_length=MAX_NAMED)] = ()
    """Series of points; empty for all."""
    columns: Annotated[tuple[ColumnName, ...], Field(max_length=64)] = ()
    """Columns in their order; empty for all."""
    x: CurveAxis = "env_step"
    """Axis of `start` and `end`."""
    start: float | None = None
    """Lower end of the range on x, inclusive; seconds on times."""
    end: float | None = None
    """Upper end, inclusive."""
    superseded: bool = False
    """Whether to include what later attempts superseded."""


class Point(NamedTuple):
    """One point of a series."""

    run_id: str
    series: str
    env_step: int
    update: int
    episode: int
    wall: float
    """Worker's clock in seconds since the Unix epoch."""
    relative: float
    """Seconds since the run's first point, exact to a millisecond."""
    value: float
    """May be NaN or infinite."""
    fence: int
    """Fence of the attempt that recorded it."""
    superseded: bool
