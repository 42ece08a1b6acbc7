"""Reads curves as buckets of one grid: the only place where queries meet stored points.

`load` reads what a request needs within one state of the database, `reduce` computes the buckets
outside the transaction. Queries, groups and overviews see `CurveBuckets` only, so the way in which
points are stored and summarised can change behind these two functions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from app.db.engine import Session
from app.db.repositories import blocks as rows
from app.metrics.columns import Floats, Ints
from app.metrics.grid import (
    Axis,
    Bound,
    Grid,
    downsample,
    round_to_milliseconds,
    to_position,
)
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import series, stored_curves
from app.services.curves.stored_curves import StoredCurve
from palestra.contract import telemetry
from palestra.contract.names import EvaluationSource

Key = tuple[str, str]
"""Run and series."""


@dataclass(frozen=True, slots=True)
class BucketRequest:
    """Curves, and the range in which they are wanted.

    Attributes:
        keys: Different curves, in the order of the answer.
        axis: Counter or time on x.
        start: Lower end of the range in coordinates of the axis; `None` begins at the data.
        end: Upper end, inclusive; `None` ends at the data.
        buckets: Most buckets.
        unit: Narrowest bucket; above 1 only where every curve is computed from evaluations.
        superseded: Whether points that later attempts superseded count.
        ended: Curves whose last point is wanted.
    """

    keys: Sequence[Key]
    axis: Axis = "env_step"
    start: float | None = None
    end: float | None = None
    buckets: int = 1_000
    unit: int = 1
    superseded: bool = False
    ended: frozenset[Key] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class CurveBuckets:
    """Curves on one grid; each column has the shape (curves, buckets).

    Aggregates are over finite values, NaN where a bucket holds none; `n` counts all points.

    Attributes:
        grid: The buckets.
        keys: Curve of each row.
        ends: Bucket and value of the last finite point of the curves in `BucketRequest.ended`; the
            bucket is below 0 or beyond the grid where the point is outside. Of several points at
            the largest x the one recorded last counts. Curves without a finite value are left out.
        span: Lowest and highest position of all points of the curves; `None` without points.
    """

    grid: Grid
    keys: Sequence[Key]
    n: Ints
    nonfinite: Ints
    min: Floats
    max: Floats
    mean: Floats
    last: Floats
    ends: Mapping[Key, tuple[int, float]]
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class LoadedCurves:
    """What `load` read for `reduce`."""

    request: BucketRequest
    grid: Grid
    spans: Sequence[tuple[Bound, Bound]]
    stored: Mapping[Key, StoredCurve]
    evaluated: Mapping[Key, "_Curve"]
    origins: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Curve:
    """A curve that is computed from evaluations."""

    x: Ints
    value: Floats


async def load(session: Session, request: BucketRequest) -> LoadedCurves:
    """Returns the stored data of the curves, and the grid that their ranges give."""
    run_ids = list(dict.fromkeys(run_id for run_id, _ in request.keys))
    made = [key for key in request.keys if parse_evaluation_series(key[1]) is not None]
    kept = [key for key in request.keys if parse_evaluation_series(key[1]) is None]
    histories = {} if request.superseded else await series.load_histories(session, run_ids)
    axis = "wall" if request.axis == "relative" else request.axis
    stored = await stored_curves.load(session, kept, axis, histories) if kept else {}
    evaluations = await _load_evaluations(session, request, {run_id for run_id, _ in made})
    evaluated = _build_evaluated(made, evaluations, axis)
    origins: Mapping[str, int] = {}
    if request.axis == "relative":
        origins = _add_origins(await stored_curves.find_origins(session, run_ids), evaluations)
    spans = [
        (Bound(span[0], origins.get(key[0], 0)), Bound(span[1], origins.get(key[0], 0)))
        for key in request.keys
        if (span := stored[key].span if key in stored else _find_span(evaluated[key])) is not None
    ]
    grid = _choose_grid(request, spans)
    loaded = LoadedCurves(request, grid, spans, stored, evaluated, origins)
    await _load_cells(session, loaded)
    return loaded


def reduce(loaded: LoadedCurves) -> CurveBuckets:
    """Returns the buckets of the curves."""
    request, grid = loaded.request, loaded.grid
    ends: dict[Key, tuple[int, float]] = {}
    for key in request.keys:
        if key in request.ended:
            points = (
                loaded.stored[key].list_points()
                if key in loaded.stored
                else (loaded.evaluated[key].x, loaded.evaluated[key].value)
            )
            end = _find_last_point(*points, grid, loaded.origins.get(key[0], 0))
            if end is not None:
                ends[key] = end
    columns = _reduce_columns(loaded)
    return CurveBuckets(grid, request.keys, **columns, ends=ends, span=_find_whole_span(loaded))


def _reduce_columns(loaded: LoadedCurves) -> dict[str, Any]:
    """Returns the columns of `CurveBuckets`: stored curves are reduced together."""
    request, grid = loaded.request, loaded.grid
    shape = (len(request.keys), grid.buckets)
    stored = [row for row, key in enumerate(request.keys) if key in loaded.stored]
    cells = stored_curves.reduce(
        [loaded.stored[request.keys[row]] for row in stored],
        _find_level(grid),
        [_find_first_key(grid, loaded.origins, request.keys[row][0]) for row in stored],
        grid.buckets,
    )
    if len(stored) == len(request.keys):
        return {name: getattr(cells, of_cells).reshape(shape) for name, of_cells in _COLUMNS}
    columns = {name: np.empty(shape, getattr(cells, of_cells).dtype) for name, of_cells in _COLUMNS}
    for name, of_cells in _COLUMNS:
        columns[name][stored] = getattr(cells, of_cells).reshape(-1, grid.buckets)
    for row, key in enumerate(request.keys):
        if key in loaded.evaluated:
            curve, origin = loaded.evaluated[key], loaded.origins.get(key[0], 0)
            found = downsample(curve.x, curve.value, grid, origin)
            for name, _ in _COLUMNS:
                columns[name][row] = getattr(found, name)
    return columns


_COLUMNS: Final = (
    ("n", "n"), ("nonfinite", "nonfinite"), ("min", "low"), ("max", "high"), ("mean", "mean"),
    ("last", "last"),
)  # fmt: skip
"""Columns of buckets, and those of cells."""


async def _load_cells(session: Session, loaded: LoadedCurves) -> None:
    """Reads the parts of stored curves that lie in the grid, and the ends that are asked for."""
    grid = loaded.grid
    for key in loaded.request.ended & loaded.stored.keys():
        await stored_curves.decode_end(session, loaded.stored[key])
    ranges = [
        (_find_first_key(grid, loaded.origins, run_id), grid.buckets) for run_id, _ in loaded.stored
    ]
    await stored_curves.load_cells(session, loaded.stored.values(), _find_level(grid), ranges)


def _find_level(grid: Grid) -> int:
    return grid.width.bit_length() - 1


def _find_first_key(grid: Grid, origins: Mapping[str, int], run_id: str) -> int:
    return grid.first + origins.get(run_id, 0) // grid.width


def _find_span(curve: _Curve) -> tuple[int, int] | None:
    return (int(curve.x.min()), int(curve.x.max())) if len(curve.x) else None


def _choose_grid(request: BucketRequest, spans: Sequence[tuple[Bound, Bound]]) -> Grid:
    start = None if request.start is None else to_position(request.axis, request.start)
    end = None if request.end is None else to_position(request.axis, request.end, upwards=True)
    lows = [low for low, _ in spans] if start is None else [Bound(start)]
    highs = [high for _, high in spans] if end is None else [Bound(end)]
    if start is None and end is not None:
        lows = [low for low in lows if low.position - low.origin <= end] or [Bound(end)]
    if end is None and start is not None:
        highs = [high for high in highs if high.position - high.origin >= start] or [Bound(start)]
    return Grid.cover(lows or [Bound(0)], highs or [Bound(0)], request.buckets, request.unit)


def _find_whole_span(loaded: LoadedCurves) -> tuple[int, int] | None:
    if not loaded.spans:
        return None
    lows = (low.position - low.origin for low, _ in loaded.spans)
    highs = (high.position - high.origin for _, high in loaded.spans)
    return min(lows), max(highs)


_Evaluations = Mapping[tuple[str, EvaluationSource], Sequence[telemetry.Evaluation]]


async def _load_evaluations(
    session: Session, request: BucketRequest, run_ids: Collection[str]
) -> _Evaluations:
    found: dict[tuple[str, EvaluationSource], list[telemetry.Evaluation]] = {}
    if run_ids:
        for row in await rows.list_evaluations(session, run_ids, superseded=request.superseded):
            record = telemetry.Evaluation.model_validate_json(row.body)
            found.setdefault((row.run_id, record.source), []).append(record)
    return found


def _build_evaluated(
    keys: Sequence[Key], evaluations: _Evaluations, axis: str
) -> dict[Key, _Curve]:
    found: dict[Key, _Curve] = {}
    for key in keys:
        made = parse_evaluation_series(key[1])
        assert made is not None
        having = [
            (record, value)
            for record in evaluations.get((key[0], made[0]), ())
            if (value := series.read_statistic(record, made[1])) is not None
        ]
        x = np.array([getattr(record, axis) for record, _ in having])
        found[key] = _Curve(
            round_to_milliseconds(x.astype(np.float64)) if axis == "wall" else x.astype(np.int64),
            np.array([value for _, value in having], np.float64),
        )
    return found


def _add_origins(stored: Mapping[str, int], evaluations: _Evaluations) -> dict[str, int]:
    """Returns the wall time at 0 of the relative time: of each run's first point or evaluation."""
    found = dict(stored)
    for (run_id, _), records in evaluations.items():
        if run_id not in stored:
            walls = round_to_milliseconds(np.array([one.wall for one in records], np.float64))
            found[run_id] = min(found.get(run_id, int(walls.min())), int(walls.min()))
    return found


def _find_last_point(x: Ints, value: Floats, grid: Grid, origin: int) -> tuple[int, float] | None:
    """Returns bucket and value of a curve's last finite point, or `None` without one."""
    finite = np.flatnonzero(np.isfinite(value))
    if not len(finite):
        return None
    last = finite[len(finite) - 1 - int(np.argmax(x[finite][::-1]))]
    return int(grid.index(x[last : last + 1], origin)[0]), float(value[last])
