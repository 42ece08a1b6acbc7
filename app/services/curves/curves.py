"""Answers a series query: curves and groups on one common grid, from one state of the database.

Blocks are read and gridded on demand. A later store with rollups keeps this interface: `query`.
"""

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.db.engine import Database, Session
from app.db.models.curves import EvaluationRow
from app.db.repositories import blocks as rows
from app.db.repositories import events as event_rows
from app.domain.errors import InvalidError, NotFoundError, TooLargeError
from app.domain.principal import Principal
from app.metrics import blocks
from app.metrics.blocks import Columns, Floats, Ints
from app.metrics.fence_chain import Chain
from app.metrics.grid import Buckets, Grid, downsample
from app.metrics.groups import GroupBuckets, carry_forward, summarise
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import series
from palestra.contract import telemetry
from palestra.contract.names import EvaluationSource
from palestra.contract.queries import GridGroup, GridSeries, SeriesGroup, SeriesQuery, SeriesResult

Key = tuple[str, str]
"""Run and series."""

MAX_CURVES: Final = 2_000
"""Largest number of different curves of one query, including those of its groups."""
MAX_CELLS: Final = 1_500_000
"""Largest product of curves and buckets of one query."""
MAX_NAMED_CELLS: Final = 2 * MAX_CELLS
"""The same, where a curve counts once for each group that names it."""
MAX_POINTS: Final = 50_000_000
"""Largest number of stored points that one query may read."""
_EMPTY: Final = re.compile(rb"(?<=\"series\":)\[\]|(?<=\"groups\":)\[\]")


@dataclass(frozen=True, slots=True)
class _Curve:
    x: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class _StoredCurves:
    """The rows that a query read from the database."""

    blocks: Mapping[Key, Sequence[rows.StoredBlock]]
    evaluations: Sequence[EvaluationRow]
    histories: Mapping[str, Chain]
    finished: frozenset[str]
    """Succeeded runs, among those in groups that carry values forward."""
    cursor: int


async def query(database: Database, principal: Principal, wanted: SeriesQuery) -> SeriesResult:
    """Returns the curves on one grid, and the ID of the last event that they include.

    Raises:
        NotFoundError: If the project lacks one of the runs.
        InvalidError: If the range is empty.
        TooLargeError: If the query exceeds a limit.
    """
    asked = _read_requested_curves(wanted)
    keys = list(dict.fromkeys(asked))
    if wanted.start is not None and wanted.end is not None and wanted.start > wanted.end:
        raise InvalidError("invalid_range", "start must not be above end", pointer="/start")
    too_often = len(asked) * wanted.buckets > MAX_NAMED_CELLS
    if len(keys) > MAX_CURVES or len(keys) * wanted.buckets > MAX_CELLS or too_often:
        message = (
            f"At most {MAX_CURVES} curves and {MAX_CELLS} buckets in all. Ask for fewer "
            "curves or buckets."
        )
        raise TooLargeError("query_too_large", message)
    async with database.read() as session:
        read = await _read(session, principal, wanted, keys)
    return await asyncio.to_thread(_answer, wanted, keys, read)


def encode(result: SeriesResult) -> Iterator[bytes]:
    """Yields the JSON of an answer in pieces: a large answer must not block the event loop."""
    bare = result.model_copy(update={"series": [], "groups": []}).model_dump_json().encode()
    head, middle, tail = _EMPTY.split(bare)
    yield head
    yield from _listed(result.series)
    yield middle
    yield from _listed(result.groups)
    yield tail


def _listed(parts: Sequence[GridSeries] | Sequence[GridGroup]) -> Iterator[bytes]:
    yield b"["
    for place, part in enumerate(parts):
        yield (b"," if place else b"") + part.model_dump_json().encode()
    yield b"]"


def _read_requested_curves(wanted: SeriesQuery) -> list[Key]:
    """Returns all requested curves, repeated ones included."""
    asked = [(one.run_id, one.series) for one in wanted.select]
    return asked + [(run_id, group.series) for group in wanted.groups for run_id in group.run_ids]


async def _read(
    session: Session, principal: Principal, wanted: SeriesQuery, keys: Sequence[Key]
) -> _StoredCurves:
    superseded = wanted.include_superseded
    cursor = await event_rows.read_newest_id(session)
    run_ids = list(dict.fromkeys(run_id for run_id, _ in keys))
    projects = await rows.load_projects(session, run_ids)
    if any(projects.get(run_id) not in principal.project_ids for run_id in run_ids):
        raise NotFoundError("run")
    stored = [key for key in keys if parse_evaluation_series(key[1]) is None]
    if await rows.count_points(session, stored) > MAX_POINTS:
        raise TooLargeError(
            "query_too_large",
            f"The curves hold more than {MAX_POINTS} points. Ask for fewer at once.",
        )
    carried = {run_id for group in wanted.groups if group.carry_forward for run_id in group.run_ids}
    evaluated = {run_id for run_id, name in keys if parse_evaluation_series(name) is not None}
    return _StoredCurves(
        blocks=await rows.load_series_blocks(session, stored),
        evaluations=await rows.list_evaluations(session, evaluated, superseded=superseded)
        if evaluated
        else (),
        histories={} if superseded else await series.load_histories(session, run_ids),
        finished=await rows.filter_succeeded_runs(session, carried) if carried else frozenset(),
        cursor=cursor,
    )


def _answer(wanted: SeriesQuery, keys: Sequence[Key], read: _StoredCurves) -> SeriesResult:
    curves = _curves(keys, read, wanted.x)
    grid = _grid(wanted, curves.values())
    buckets = {key: downsample(curve.x, curve.value, grid) for key, curve in curves.items()}
    return SeriesResult.model_construct(
        x=wanted.x,
        grid=grid.centres.tolist(),
        start=grid.start,
        end=grid.end,
        series=[
            _series((one.run_id, one.series), buckets[one.run_id, one.series])
            for one in wanted.select
        ],
        groups=[_group(group, curves, buckets, grid, read.finished) for group in wanted.groups],
        cursor=read.cursor,
    )


def _curves(keys: Sequence[Key], read: _StoredCurves, axis: str) -> dict[Key, _Curve]:
    evaluations: dict[tuple[str, EvaluationSource], list[telemetry.Evaluation]] = {}
    for row in read.evaluations:
        record = telemetry.Evaluation.model_validate_json(row.body)
        evaluations.setdefault((row.run_id, record.source), []).append(record)
    found: dict[Key, _Curve] = {}
    for key in keys:
        made = parse_evaluation_series(key[1])
        if made is None:
            found[key] = _stored_curve(read.blocks[key], read.histories.get(key[0], {}), axis)
        else:
            found[key] = _evaluation_curve(evaluations.get((key[0], made[0]), ()), made[1], axis)
    return found


def _evaluation_curve(found: Sequence[telemetry.Evaluation], statistic: str, axis: str) -> _Curve:
    having = [
        (record, value)
        for record in found
        if (value := series.read_statistic(record, statistic)) is not None
    ]
    x = np.array([getattr(record, axis) for record, _ in having], np.float64)
    return _Curve(x, np.array([value for _, value in having], np.float64))


def _stored_curve(stored: Sequence[rows.StoredBlock], history: Chain, axis: str) -> _Curve:
    columns = blocks.concatenate(_select_points_of_history(block, history) for block in stored)
    return _Curve(np.asarray(getattr(columns, axis), np.float64), columns.value)


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


def _grid(wanted: SeriesQuery, curves: Collection[_Curve]) -> Grid:
    start, end = wanted.start, wanted.end
    filled = [curve.x for curve in curves if len(curve.x)]
    if start is None:
        start = min((float(x.min()) for x in filled), default=0.0 if end is None else end)
        start = start if end is None else min(start, end)
    if end is None:
        end = max(start, max((float(x.max()) for x in filled), default=start))
    return Grid.from_range(start, end, wanted.buckets)


def _group(
    group: SeriesGroup,
    curves: Mapping[Key, _Curve],
    buckets: Mapping[Key, Buckets],
    grid: Grid,
    finished: frozenset[str],
) -> GridGroup:
    keys = [(run_id, group.series) for run_id in group.run_ids]
    means = np.stack([buckets[key].mean for key in keys])
    carrying = group.carry_forward
    means, carried = carry_forward(
        means,
        [
            _find_last_point(curves[key], grid) if carrying and key[0] in finished else None
            for key in keys
        ],
    )
    return _group_view(group, summarise(means), carried)


def _find_last_point(curve: _Curve, grid: Grid) -> tuple[int, float] | None:
    """Returns bucket and value of a curve's last finite point, or `None` without one.

    The point may lie before the grid.
    """
    finite = np.flatnonzero(np.isfinite(curve.value))
    if not len(finite):
        return None
    last = finite[len(finite) - 1 - int(np.argmax(curve.x[finite][::-1]))]
    x = curve.x[last : last + 1]
    return (-1 if x[0] < grid.start else int(grid.index(x)[0])), float(curve.value[last])


def _series(key: Key, found: Buckets) -> GridSeries:
    return GridSeries.model_construct(
        run_id=key[0],
        series=key[1],
        min=_replace_nan(found.min),
        max=_replace_nan(found.max),
        mean=_replace_nan(found.mean),
        last=_replace_nan(found.last),
        n=found.n.tolist(),
        nonfinite=found.nonfinite.tolist(),
        points=found.points,
    )


def _group_view(group: SeriesGroup, found: GroupBuckets, carried: Ints) -> GridGroup:
    columns = ("mean", "median", "stdev", "min", "max", "low", "high")
    values: dict[str, Any] = {column: _replace_nan(getattr(found, column)) for column in columns}
    return GridGroup.model_construct(
        name=group.name, series=group.series, n=found.n.tolist(), carried=carried.tolist(), **values
    )


def _replace_nan(values: Floats) -> list[float | None]:
    """Returns the values with `None` for NaN."""
    plain: list[float | None] = values.tolist()
    for place in np.flatnonzero(np.isnan(values)).tolist():
        plain[place] = None
    return plain
