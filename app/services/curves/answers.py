"""Writes the answer to a series query as JSON or as an Arrow stream, straight from arrays."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from app.metrics.columns import Floats, Ints
from app.metrics.grid import to_coordinates
from app.metrics.groups import GroupBuckets
from app.services.curves.buckets import CurveBuckets, Key
from app.services.curves.selection import CurveGroup
from palestra.contract.queries import SeriesQuery

ARROW: Final = "application/vnd.apache.arrow.stream"
_COLUMNS: Final = ("min", "max", "mean", "last", "n", "nonfinite")
_STATISTICS: Final = ("mean", "median", "iqm", "stdev", "stderr", "min", "max")
_INTERVALS: Final = {
    "low": "interval",
    "high": "interval",
    "iqm_low": "iqm_interval",
    "iqm_high": "iqm_interval",
}
"""Columns of intervals, and the statistic that asks for each."""
_NOTHING: Final = np.zeros(0)


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """A group, its statistics per bucket, and how many of its runs are carried forward."""

    group: CurveGroup
    statistics: GroupBuckets
    carried: Ints
    smoothed: Floats | None


@dataclass(frozen=True, slots=True)
class CurveAnswer:
    """Curves and groups on one grid.

    Attributes:
        query: What was asked.
        found: All curves, those of groups included.
        shown: Curves of the answer.
        rows: Row of each shown curve in the columns of `found`.
        groups: Groups of the answer.
        smoothed: Smoothed means of `found`, if asked.
        cursor: Last event that the answer contains.
    """

    query: SeriesQuery
    found: CurveBuckets
    shown: Sequence[Key]
    rows: Sequence[int]
    groups: Sequence[GroupAnswer]
    smoothed: Floats | None
    cursor: int


def encode_json(answer: CurveAnswer) -> bytes:
    """Returns the JSON of a `SeriesResult`; buckets without a finite value are `null`."""
    document = {
        **_describe_grid(answer),
        "series": [
            _describe_curve(answer, key, row)
            for key, row in zip(answer.shown, answer.rows, strict=True)
        ],
        "groups": [_describe_group(answer, one) for one in answer.groups],
        "cursor": answer.cursor,
    }
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def encode_arrow(answer: CurveAnswer) -> bytes:
    """Returns an Arrow stream with a row per curve and per group, its columns lists of buckets.

    What the JSON says once, grid and cursor, is JSON in the schema's metadata `palestra`.
    """
    import pyarrow as pa  # noqa: PLC0415 - takes 30 MB, and most servers never answer Arrow

    rows = [
        _describe_curve(answer, key, row)
        for key, row in zip(answer.shown, answer.rows, strict=True)
    ]
    rows += [_describe_group(answer, one) for one in answer.groups]
    head = {**_describe_grid(answer), "cursor": answer.cursor}
    head["grid"] = head["grid"].tolist()
    columns: dict[str, Any] = {
        "run_id": pa.array([row.get("run_id") for row in rows], pa.string()),
        "group": pa.array([row.get("name") for row in rows], pa.string()),
        "series": pa.array([row["series"] for row in rows], pa.string()),
        "by": pa.array([json.dumps(row["by"]) if "by" in row else None for row in rows]),
    }
    for name in (*_COLUMNS, "median", "iqm", "stdev", "stderr", *_INTERVALS, "carried", "smoothed"):
        columns[name] = _join_lists(pa, name, [row.get(name, _NOTHING) for row in rows])
    table = pa.table(columns).replace_schema_metadata({"palestra": json.dumps(head)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _join_lists(pa: Any, name: str, lists: Sequence[Any]) -> Any:
    """Returns a column of lists without copying a number twice; NaN becomes NULL."""
    counts = name in {"n", "nonfinite", "carried"}
    kind = pa.int64() if counts else pa.float64()
    flat = np.concatenate([np.asarray(one) for one in lists]) if lists else _NOTHING
    values = pa.array(flat.astype(np.int64 if counts else np.float64), kind, from_pandas=True)
    ends = np.cumsum([0, *(len(one) for one in lists)])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _describe_grid(answer: CurveAnswer) -> dict[str, Any]:
    grid, axis = answer.found.grid, answer.query.x
    start, end, width = to_coordinates(
        axis, np.array([grid.start, grid.end, grid.width], np.float64)
    ).tolist()
    centres = to_coordinates(axis, grid.centres)
    return {"x": axis, "grid": centres, "start": start, "end": end, "width": width}


def _describe_curve(answer: CurveAnswer, key: Key, row: int) -> dict[str, Any]:
    found, asked = answer.found, answer.query.columns
    columns = {name: getattr(found, name)[row] if name in asked else _NOTHING for name in _COLUMNS}
    return {
        "run_id": key[0],
        "series": key[1],
        **columns,
        "points": int(found.n[row].sum()),
        "smoothed": _NOTHING if answer.smoothed is None else answer.smoothed[row],
    }


def _describe_group(answer: CurveAnswer, one: GroupAnswer) -> dict[str, Any]:
    asked = answer.query.statistics
    columns = {
        name: getattr(one.statistics, name) if name in asked else _NOTHING for name in _STATISTICS
    }
    interval = {
        name: getattr(one.statistics, name) if statistic in asked else _NOTHING
        for name, statistic in _INTERVALS.items()
    }
    return {
        "name": one.group.name,
        "series": one.group.series,
        **columns,
        **interval,
        "n": one.statistics.n,
        "carried": one.carried,
        "smoothed": _NOTHING if one.smoothed is None else one.smoothed,
        "by": dict(one.group.by),
        "run_ids": list(one.group.run_ids),
    }
