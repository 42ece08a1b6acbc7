"""Reads curves as buckets of one grid: the only place where queries meet stored points.

`load` reads what a request needs within one state of the database, `reduce` computes the buckets
outside the transaction. Queries, groups and overviews see `CurveBuckets` only, so the way in which
points are stored and summarised can change behind these two functions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.repositories import blocks as rows
from app.db.repositories import curve_queries
from app.metrics import blocks
from app.metrics.blocks import Columns, Floats, Ints
from app.metrics.fence_chain import Chain
from app.metrics.grid import (
    Axis,
    Bound,
    Buckets,
    Grid,
    downsample,
    round_to_milliseconds,
    to_position,
)
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import series
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
    blocks: Mapping[Key, Sequence[rows.StoredBlock]]
    evaluations: Sequence[EvaluationRow]
    histories: Mapping[str, Chain]
    first_blocks: Mapping[str, bytes]
    """Block whose first point is at 0 of the relative time of a run."""


@dataclass(frozen=True, slots=True)
class _Curve:
    x: Ints
    value: Floats
    origin: int = 0


async def load(session: Session, request: BucketRequest) -> LoadedCurves:
    """Returns the stored data of the curves."""
    run_ids = list(dict.fromkeys(run_id for run_id, _ in request.keys))
    stored = [key for key in request.keys if parse_evaluation_series(key[1]) is None]
    evaluated = {run for run, name in request.keys if parse_evaluation_series(name) is not None}
    return LoadedCurves(
        request=request,
        blocks=await rows.load_series_blocks(session, stored),
        evaluations=await rows.list_evaluations(session, evaluated, superseded=request.superseded)
        if evaluated
        else (),
        histories={} if request.superseded else await series.load_histories(session, run_ids),
        first_blocks=await curve_queries.load_first_blocks(session, run_ids)
        if request.axis == "relative"
        else {},
    )


def reduce(loaded: LoadedCurves) -> CurveBuckets:
    """Returns the buckets of the curves."""
    request = loaded.request
    curves = _list_curves(loaded)
    spans = [
        (Bound(int(curve.x.min()), curve.origin), Bound(int(curve.x.max()), curve.origin))
        for curve in curves
        if len(curve.x)
    ]
    grid = _choose_grid(request, spans)
    found = [downsample(curve.x, curve.value, grid, curve.origin) for curve in curves]
    ends = {
        key: end
        for key, curve in zip(request.keys, curves, strict=True)
        if key in request.ended and (end := _find_last_point(curve, grid)) is not None
    }
    return _stack(request.keys, grid, found, ends, spans)


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


def _stack(
    keys: Sequence[Key],
    grid: Grid,
    found: Sequence[Buckets],
    ends: Mapping[Key, tuple[int, float]],
    spans: Sequence[tuple[Bound, Bound]],
) -> CurveBuckets:
    shape = (len(keys), grid.buckets)

    def join(column: str) -> Floats:
        return np.array([getattr(one, column) for one in found], np.float64).reshape(shape)

    def join_counts(column: str) -> Ints:
        return np.array([getattr(one, column) for one in found], np.int64).reshape(shape)

    span = (
        (
            min(low.position - low.origin for low, _ in spans),
            max(high.position - high.origin for _, high in spans),
        )
        if spans
        else None
    )
    return CurveBuckets(
        grid=grid,
        keys=keys,
        n=join_counts("n"),
        nonfinite=join_counts("nonfinite"),
        min=join("min"),
        max=join("max"),
        mean=join("mean"),
        last=join("last"),
        ends=ends,
        span=span,
    )


def _list_curves(loaded: LoadedCurves) -> list[_Curve]:
    axis = loaded.request.axis
    evaluations: dict[tuple[str, EvaluationSource], list[telemetry.Evaluation]] = {}
    for row in loaded.evaluations:
        record = telemetry.Evaluation.model_validate_json(row.body)
        evaluations.setdefault((row.run_id, record.source), []).append(record)
    origins = _find_origins(loaded, evaluations) if axis == "relative" else {}
    found: list[_Curve] = []
    for run_id, name in loaded.request.keys:
        made = parse_evaluation_series(name)
        origin = origins.get(run_id, 0)
        if made is None:
            history = loaded.histories.get(run_id, {})
            found.append(_build_stored(loaded.blocks[run_id, name], history, axis, origin))
        else:
            found.append(
                _build_evaluated(evaluations.get((run_id, made[0]), ()), made[1], axis, origin)
            )
    return found


def _find_origins(
    loaded: LoadedCurves,
    evaluations: Mapping[tuple[str, EvaluationSource], Collection[telemetry.Evaluation]],
) -> dict[str, int]:
    """Returns the wall time at 0 of the relative time: of each run's first point or evaluation."""
    firsts = {
        run_id: blocks.decode(content).wall[:1] for run_id, content in loaded.first_blocks.items()
    }
    for (run_id, _), records in evaluations.items():
        if run_id not in loaded.first_blocks:
            known = firsts.get(run_id, np.zeros(0))
            walls = np.array([record.wall for record in records], np.float64)
            firsts[run_id] = np.append(known, walls).min(keepdims=True)
    return {run_id: int(round_to_milliseconds(wall)[0]) for run_id, wall in firsts.items()}


def _build_evaluated(
    found: Collection[telemetry.Evaluation], statistic: str, axis: Axis, origin: int
) -> _Curve:
    having = [
        (record, value)
        for record in found
        if (value := series.read_statistic(record, statistic)) is not None
    ]
    name = "wall" if axis == "relative" else axis
    x = np.array([getattr(record, name) for record, _ in having])
    return _Curve(
        round_to_milliseconds(x.astype(np.float64)) if name == "wall" else x.astype(np.int64),
        np.array([value for _, value in having], np.float64),
        origin,
    )


def _build_stored(
    stored: Sequence[rows.StoredBlock], history: Chain, axis: Axis, origin: int
) -> _Curve:
    columns = blocks.concatenate(_select_points_of_history(block, history) for block in stored)
    x: Ints = (
        round_to_milliseconds(columns.wall)
        if axis in {"wall", "relative"}
        else getattr(columns, axis)
    )
    return _Curve(x, columns.value, origin)


def _select_points_of_history(block: rows.StoredBlock, history: Chain) -> Columns:
    """Returns the points of a block that belong to the run's history; all for an empty chain."""
    if history and block.fence not in history:
        return blocks.empty()
    columns = blocks.decode(block.content)
    bound = history.get(block.fence)
    if bound is None:
        return columns
    before = columns.env_step < bound.env_step
    return blocks.select(
        columns, before | ((columns.env_step == bound.env_step) & (columns.update <= bound.update))
    )


def _find_last_point(curve: _Curve, grid: Grid) -> tuple[int, float] | None:
    """Returns bucket and value of a curve's last finite point, or `None` without one."""
    finite = np.flatnonzero(np.isfinite(curve.value))
    if not len(finite):
        return None
    last = finite[len(finite) - 1 - int(np.argmax(curve.x[finite][::-1]))]
    bucket = int(grid.index(curve.x[last : last + 1], curve.origin)[0])
    return bucket, float(curve.value[last])
