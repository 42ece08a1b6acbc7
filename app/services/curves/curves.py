"""Answers a series query: curves and groups on one common grid, from one state of the database.

`app.services.curves.buckets` reads the curves; here they become the answer.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from app.db.engine import Database, Session
from app.db.repositories import blocks as rows
from app.db.repositories import events as event_rows
from app.domain.errors import InvalidError, NotFoundError, TooLargeError
from app.domain.principal import Principal
from app.metrics.blocks import Floats, Ints
from app.metrics.grid import to_coordinates
from app.metrics.groups import GroupBuckets, carry_forward, summarise
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import buckets
from app.services.curves.buckets import BucketRequest, CurveBuckets, Key, LoadedCurves
from palestra.contract.queries import GridGroup, GridSeries, SeriesGroup, SeriesQuery, SeriesResult

MAX_CURVES: Final = 2_000
"""Largest number of different curves of one query, including those of its groups."""
MAX_CELLS: Final = 1_500_000
"""Largest product of curves and buckets of one query."""
MAX_NAMED_CELLS: Final = 2 * MAX_CELLS
"""The same, where a curve counts once for each group that names it."""
MAX_POINTS: Final = 50_000_000
"""Largest number of stored points that one query may read."""
_EMPTY: Final = re.compile(rb"(?<=\"series\":)\[\]|(?<=\"groups\":)\[\]")


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
        cursor, loaded = await _load(session, principal, wanted, keys)
    return await asyncio.to_thread(_answer, wanted, cursor, loaded)


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


async def _load(
    session: Session, principal: Principal, wanted: SeriesQuery, keys: Sequence[Key]
) -> tuple[int, LoadedCurves]:
    """Returns the ID of the last event and the data of the curves."""
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
    request = BucketRequest(
        keys=keys,
        axis=wanted.x,
        start=wanted.start,
        end=wanted.end,
        buckets=wanted.buckets,
        superseded=wanted.include_superseded,
        ended=await _list_ended(session, wanted.groups),
    )
    return cursor, await buckets.load(session, request)


async def _list_ended(session: Session, groups: Sequence[SeriesGroup]) -> frozenset[Key]:
    """Returns the curves of succeeded runs in groups that carry values forward."""
    carried = {
        (run_id, group.series)
        for group in groups
        if group.carry_forward
        for run_id in group.run_ids
    }
    if not carried:
        return frozenset()
    over = await rows.filter_succeeded_runs(session, {run_id for run_id, _ in carried})
    return frozenset(key for key in carried if key[0] in over)


def _answer(wanted: SeriesQuery, cursor: int, loaded: LoadedCurves) -> SeriesResult:
    found = buckets.reduce(loaded)
    rows_of = {key: row for row, key in enumerate(found.keys)}
    start, end, width = to_coordinates(
        wanted.x, np.array([found.grid.start, found.grid.end, found.grid.width], np.float64)
    ).tolist()
    return SeriesResult.model_construct(
        x=wanted.x,
        grid=to_coordinates(wanted.x, found.grid.centres).tolist(),
        start=start,
        end=end,
        width=width,
        series=[
            _series(found, rows_of[one.run_id, one.series], (one.run_id, one.series))
            for one in wanted.select
        ],
        groups=[_group(group, found, rows_of) for group in wanted.groups],
        cursor=cursor,
    )


def _group(group: SeriesGroup, found: CurveBuckets, rows_of: Mapping[Key, int]) -> GridGroup:
    keys = [(run_id, group.series) for run_id in group.run_ids]
    means, carried = carry_forward(
        found.mean[[rows_of[key] for key in keys]],
        [found.ends.get(key) if group.carry_forward else None for key in keys],
    )
    return _group_view(group, summarise(means), carried)


def _series(found: CurveBuckets, row: int, key: Key) -> GridSeries:
    return GridSeries.model_construct(
        run_id=key[0],
        series=key[1],
        min=_replace_nan(found.min[row]),
        max=_replace_nan(found.max[row]),
        mean=_replace_nan(found.mean[row]),
        last=_replace_nan(found.last[row]),
        n=found.n[row].tolist(),
        nonfinite=found.nonfinite[row].tolist(),
        points=int(found.n[row].sum()),
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
