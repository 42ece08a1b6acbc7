"""Answers a series query: curves and groups on one common grid, from one state of the database.

`selection` says which curves are wanted, `buckets` reads them, and `answers` writes them.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.db.engine import Database, Session
from app.db.repositories import blocks as rows
from app.db.repositories import queried_runs
from app.db.repositories.queried_runs import QueryCounts
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.metrics.columns import Floats
from app.metrics.grid import to_coordinates
from app.metrics.groups import WantedIntervals, carry_forward, summarise
from app.metrics.smoothing import smooth_by_bucket, smooth_by_distance
from app.metrics.sort_records import parse_evaluation_series
from app.services.curves import answers, buckets
from app.services.curves.answers import CurveAnswer, GroupAnswer
from app.services.curves.buckets import BucketRequest, CurveBuckets, Key, LoadedCurves
from app.services.curves.selection import (
    CurveGroup,
    Selection,
    check_names,
    have_ended,
    select_curves,
)
from palestra.contract.queries import SeriesQuery, SeriesResult

_FORM: Final = 2
"""Raised whenever the same data is answered in another form: older entity tags then differ."""
_TIMES: Final = frozenset({"wall", "relative"})


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """An answer and its entity tag.

    Attributes:
        answer: `None` where the caller has the answer with this tag.
        tag: Identifies query and data; `None` while one of the runs may get points.
    """

    answer: CurveAnswer | None
    tag: str | None


async def query(database: Database, principal: Principal, wanted: SeriesQuery) -> SeriesResult:
    """Returns the curves on one grid, and the ID of the last event that they include.

    Raises:
        NotFoundError: If the project lacks one of the runs.
        InvalidError: If the range, a group, a field or the name of a series is wrong.
        TooLargeError: If the query exceeds a limit.
    """
    found = await read(database, principal, wanted)
    assert found.answer is not None
    return SeriesResult.model_validate_json(answers.encode_json(found.answer))


async def read(
    database: Database, principal: Principal, wanted: SeriesQuery, known: Collection[str] = ()
) -> TaggedAnswer:
    """Returns the answer to a query, unless its tag is among the `known` ones.

    Raises:
        NotFoundError: If the project lacks one of the runs.
        InvalidError: If the range, a group, a field or the name of a series is wrong.
        TooLargeError: If the query exceeds a limit.
    """
    if wanted.start is not None and wanted.end is not None and wanted.start > wanted.end:
        raise InvalidError("invalid_range", "start must not be above end", pointer="/start")
    async with database.read() as session:
        selection = await select_curves(session, principal, wanted)
        _check_unit(wanted, selection)
        counts = await queried_runs.load_counts(session, selection.stored_keys, selection.runs)
        await check_names(session, wanted, selection, counts.points)
        tag = _compute_tag(wanted, selection, counts)
        if tag is not None and tag in known:
            return TaggedAnswer(None, tag)
        request = BucketRequest(
            keys=selection.keys,
            axis=wanted.x,
            start=wanted.start,
            end=wanted.end,
            buckets=wanted.buckets,
            unit=wanted.unit,
            superseded=wanted.include_superseded,
            ended=await _list_ended(session, selection.groups),
        )
        loaded = await buckets.load(session, request)
    answer = await asyncio.to_thread(_answer, wanted, selection, counts.newest_event, loaded)
    return TaggedAnswer(answer, tag)


def _check_unit(wanted: SeriesQuery, selection: Selection) -> None:
    stored = any(parse_evaluation_series(name) is None for _, name in selection.keys)
    if wanted.unit > 1 and (stored or wanted.x in _TIMES):
        raise InvalidError(
            "unit_needs_evaluations",
            "must be 1 unless all curves are computed from evaluations and x is a counter",
            pointer="/unit",
        )


def _compute_tag(wanted: SeriesQuery, selection: Selection, counts: QueryCounts) -> str | None:
    """Returns the tag of an answer whose runs have all ended; `None` for others.

    Points are only added, evaluations are added or superseded, and a fence changes what is
    superseded: their counts identify the data.
    """
    if not selection.runs or not have_ended(selection.runs.values()):
        return None
    runs = sorted(
        (run.id, run.state, run.fence, counts.evaluations.get(run.id, (0, 0)))
        for run in selection.runs.values()
    )
    parts = (_FORM, wanted.model_dump_json(), runs, sorted(counts.points.items()))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


async def _list_ended(session: Session, groups: Sequence[CurveGroup]) -> frozenset[Key]:
    """Returns the curves of succeeded runs in groups that carry values forward."""
    carried = {key for group in groups if group.carry_forward for key in group.keys}
    if not carried:
        return frozenset()
    over = await rows.filter_succeeded_runs(session, {run_id for run_id, _ in carried})
    return frozenset(key for key in carried if key[0] in over)


def _answer(
    wanted: SeriesQuery, selection: Selection, cursor: int, loaded: LoadedCurves
) -> CurveAnswer:
    found = buckets.reduce(loaded)
    _check_range(wanted, selection, found)
    rows_of = {key: row for row, key in enumerate(found.keys)}
    return CurveAnswer(
        query=wanted,
        found=found,
        shown=selection.shown,
        rows=[rows_of[key] for key in selection.shown],
        groups=[
            _summarise(wanted, group, found, rows_of, selection.environments)
            for group in selection.groups
        ],
        smoothed=_smooth(wanted, found, found.mean),
        cursor=cursor,
    )


def _check_range(wanted: SeriesQuery, selection: Selection, found: CurveBuckets) -> None:
    """Refuses a range without points, unless one of the runs may still get points there."""
    if (wanted.start is None and wanted.end is None) or found.span is None or found.n.any():
        return
    if not have_ended(selection.runs.values()):
        return
    low, high = to_coordinates(wanted.x, np.array(found.span, np.float64)).tolist()
    raise InvalidError(
        "range_without_data",
        f"leaves no point: the curves have points from {low:.15g} to {high:.15g} of {wanted.x}",
        pointer="/end" if wanted.start is None else "/start",
    )


def _summarise(
    wanted: SeriesQuery,
    group: CurveGroup,
    found: CurveBuckets,
    rows_of: Mapping[Key, int],
    environments: Mapping[str, str],
) -> GroupAnswer:
    means, carried = carry_forward(
        found.mean[[rows_of[key] for key in group.keys]],
        [found.ends.get(key) if group.carry_forward else None for key in group.keys],
    )
    statistics = summarise(
        means,
        WantedIntervals("interval" in wanted.statistics, "iqm_interval" in wanted.statistics),
        [environments[run_id] for run_id in group.run_ids] if environments else None,
    )
    smoothed = _smooth(wanted, found, statistics.mean[None, :])
    return GroupAnswer(group, statistics, carried, None if smoothed is None else smoothed[0])


def _smooth(wanted: SeriesQuery, found: CurveBuckets, means: Floats) -> Floats | None:
    if wanted.smoothing is None:
        return None
    if wanted.smoothing.weight is not None:
        return smooth_by_bucket(means, wanted.smoothing.weight)
    assert wanted.smoothing.half_life is not None
    (width,) = to_coordinates(wanted.x, np.array([found.grid.width], np.float64)).tolist()
    return smooth_by_distance(means, wanted.smoothing.half_life / width)
