"""The methods of `palestra.Client` that export points, episodes, evaluations and epochs of runs."""

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from palestra import record_frames
from palestra.client_methods import ClientMethods
from palestra.contract.record_exports import Point, RecordFormat, RecordKind, RecordQuery

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_PATH: Final = "/records:export"


class RecordMethods(ClientMethods):
    """Everything that runs recorded, as rows, as data frames and as files."""

    def points(self, of: RecordQuery | str, *series: str) -> Iterator[Point]:
        """Yields all points of runs, as they are received: memory does not grow with their number.

        Points are in the order of the runs, then of the names of the series, then in the order in
        which they were recorded. What later attempts superseded is left out unless the query asks
        for it.

        Args:
            of: ID of a run or an experiment, or a query.
            series: Names of series; all series by default. Not with a query, which has its own.

        Raises:
            PalestraError: If the server refused, or the connection broke before the last point.
        """
        query = _read_query(of, "points", series)
        query = query.model_copy(update={"kind": "points", "columns": Point._fields})
        lines = self._connection.lines(_PATH, _list_parameters(query, "csv", self._project))
        rows = csv.reader(line.decode() for line in lines)
        next(rows)
        for run_id, name, env_step, update, episode, wall, relative, value, fence, cut in rows:
            yield Point(
                run_id,
                name,
                int(env_step),
                int(update),
                int(episode),
                float(wall),
                float(relative),
                float(value),
                int(fence),
                cut == "true",
            )

    def frame(
        self,
        of: RecordQuery | str,
        *series: str,
        kind: RecordKind = "points",
        library: Literal["pandas", "polars"] | None = None,
    ) -> "pd.DataFrame | pl.DataFrame":
        """Returns all points, episodes, evaluations or epochs of runs as a data frame.

        It has a row for each point, episode, evaluation or epoch, and a column for each of their
        members; run_id and series are categories. Every bit of a number is restored.

        Args:
            of: ID of a run or an experiment, or a query.
            series: Names of series of points; all series by default. Not with a query.
            kind: What to read. A query has its own kind.
            library: Library of the frame; by default pandas, or polars where that is not installed.

        Raises:
            LibraryMissingError: If the library is not installed.
            PalestraError: If the server refused, or the connection broke before the last row.
        """
        chosen = record_frames.choose_library(library)
        query = _read_query(of, kind, series)
        form: RecordFormat = record_frames.choose_format(chosen)
        return record_frames.read_frame(chosen, form, self.export_records(query, format=form))

    def export_records(
        self,
        of: RecordQuery | str,
        *,
        format: RecordFormat = "csv",  # noqa: A002 - the API's word
    ) -> Iterator[bytes]:
        """Yields the pieces of a file with all points, episodes, evaluations or epochs of runs.

        Args:
            of: ID of a run or an experiment, whose points are exported, or a query.
            format: `csv`, `parquet` or `arrow` (an Arrow IPC stream).

        Raises:
            PalestraError: If the server refused, or the connection broke before the last piece.
        """
        query = _read_query(of, "points", ())
        return self._connection.pieces(_PATH, _list_parameters(query, format, self._project))


def _read_query(of: RecordQuery | str, kind: RecordKind, series: tuple[str, ...]) -> RecordQuery:
    if isinstance(of, RecordQuery):
        if series:
            raise ValueError("name the series in the query, or give an ID instead of a query")
        return of
    of_run = of.startswith("run_")
    return RecordQuery(
        kind=kind,
        runs=(of,) if of_run else (),
        experiments=() if of_run else (of,),
        series=series,
    )


def _list_parameters(query: RecordQuery, form: RecordFormat, project: str | None) -> dict[str, Any]:
    has_range = query.start is not None or query.end is not None
    return {
        "project": project,
        "kind": query.kind,
        "format": form,
        "run": list(query.runs),
        "experiment": list(query.experiments),
        "series": list(query.series),
        "column": list(query.columns),
        "x": query.x if has_range else None,
        "start": query.start,
        "end": query.end,
        "superseded": query.superseded or None,
    }
