"""Reads all points of series page by page, each point once.

Every page is read within a transaction of its own, so a slow reader holds none open. A page ends
after a whole record, and the next one continues from that record on: the compactor moves points to
other blocks between two pages, but it changes neither their records nor their order. What is read
is fixed when the first page is: records that arrive later are left out.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from app.db.engine import Database, Session
from app.db.repositories import blocks as block_rows
from app.db.repositories import stored_points as rows
from app.db.repositories.stored_points import RecordKey, StoredPart, StoredSeries
from app.metrics import blocks, fence_chain, point_tables
from app.metrics.columns import Columns
from app.metrics.fence_chain import Chain
from app.services.curves import series as series_service
from app.services.curves import stored_curves

PAGE_POINTS: Final = 65_536
"""Points after which a page ends; parts are read as a whole, so it may hold three times as many."""
_TAILS: Final = 32
"""Batches that are in memory at once; each is at most as large as a request."""


class PointsMissingError(Exception):
    """Points of a series are gone, since the run was deleted while it was read."""


@dataclass(frozen=True, slots=True)
class PointState:
    """What of a run is exported, as one state of the database has it.

    Attributes:
        run_id: The run.
        series: The series, by name.
        acked: Last record of each attempt.
        history: Decides what is superseded.
        origin: Wall time of the first point in milliseconds; `None` without points.
    """

    run_id: str
    series: Sequence[StoredSeries]
    acked: Mapping[str, int]
    history: Chain
    origin: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive points of one series from one attempt."""

    name: str
    key: RecordKey
    """The first record."""
    columns: Columns
    superseded: npt.NDArray[np.bool_]


async def load_state(session: Session, run_id: str, names: Collection[str] | None) -> PointState:
    """Returns what to export of a run; of the series in `names`, if given."""
    histories = await series_service.load_histories(session, [run_id])
    origins = await stored_curves.find_origins(session, [run_id])
    return PointState(
        run_id=run_id,
        series=await rows.list_series(session, run_id, names),
        acked=await rows.load_acked(session, run_id),
        history=histories[run_id],
        origin=origins.get(run_id),
    )


async def read_series(
    database: Database, state: PointState, wanted: Sequence[StoredSeries]
) -> AsyncIterator[list[Section]]:
    """Yields the points of series page by page, in the order (fence, attempt, record).

    Of several series, a page holds the points of the same records.

    Args:
        database: The database.
        state: State of the run.
        wanted: Series of the run.

    Raises:
        PointsMissingError: If the points are fewer or more than `state` says.
    """
    counts = dict.fromkeys((one.name for one in wanted), 0)
    after: RecordKey | None = None
    while True:
        async with database.read() as session:
            page, after = await _read_page(session, state, wanted, after, PAGE_POINTS)
        for section in page:
            counts[section.name] += len(section.columns)
        yield page
        if after is None:
            break
    _check_counts(state, wanted, counts)


async def read_small_series(
    database: Database, state: PointState, wanted: Sequence[StoredSeries]
) -> list[Section]:
    """Returns all points of series that fit into memory, in the order of the series.

    Raises:
        PointsMissingError: If the points are fewer or more than `state` says.
    """
    async with database.read() as session:
        page, _ = await _read_page(session, state, wanted, None, None)
    counts = dict.fromkeys((one.name for one in wanted), 0)
    for section in page:
        counts[section.name] += len(section.columns)
    _check_counts(state, wanted, counts)
    return sorted(page, key=lambda section: section.name)


def _check_counts(
    state: PointState, wanted: Sequence[StoredSeries], counts: Mapping[str, int]
) -> None:
    for one in wanted:
        if counts[one.name] != one.points:
            raise PointsMissingError(
                f"{one.name} of {state.run_id}: {counts[one.name]} of {one.points} points"
            )


async def _read_page(
    session: Session,
    state: PointState,
    wanted: Sequence[StoredSeries],
    after: RecordKey | None,
    most: int | None,
) -> tuple[list[Section], RecordKey | None]:
    """Returns the points behind a record, and the record that ends the page; `None` at the end."""
    parts = await rows.list_parts(session, state.run_id, [one.id for one in wanted], after)
    chosen, end = _choose_parts(parts, most)
    names = {one.id: one.name for one in wanted}
    in_blocks = [part for part in chosen if part.series_id is not None]
    contents = await block_rows.load_contents(session, [part.id for part in in_blocks])
    found: list[tuple[StoredPart, str, Columns]] = await asyncio.to_thread(
        lambda: [
            (part, names[part.series_id], blocks.decode(contents[part.id]))
            for part in in_blocks
            if part.series_id is not None
        ]
    )
    in_tails = [part for part in chosen if part.series_id is None]
    for first in range(0, len(in_tails), _TAILS):
        some = in_tails[first : first + _TAILS]
        tails = await rows.load_tails(session, [part.id for part in some])
        found += await asyncio.to_thread(_decode_tails, some, tails, set(names.values()))
    sections = [
        section
        for part, name, columns in sorted(found, key=lambda one: one[0].first)
        if (section := _cut(state, part, name, columns, after, end)) is not None
    ]
    return sections, end


def _choose_parts(
    parts: Iterable[StoredPart], most: int | None
) -> tuple[list[StoredPart], RecordKey | None]:
    """Returns the parts of a page, and its last record; `None` where nothing follows."""
    chosen: list[StoredPart] = []
    end: RecordKey | None = None
    total, is_last = 0, True
    for part in parts:
        if end is None or most is None or total < most:
            end = part.last if end is None else max(end, part.last)
        elif part.first > end:
            is_last = False
            break
        is_last = is_last and part.last <= end
        chosen.append(part)
        total += part.points
    return chosen, None if is_last else end


def _decode_tails(
    parts: Sequence[StoredPart], contents: Mapping[int, bytes], names: Collection[str]
) -> list[tuple[StoredPart, str, Columns]]:
    return [
        (part, name, _copy(columns))
        for part in parts
        for name, columns in point_tables.join_series(
            point_tables.decode(contents[part.id]), names
        ).items()
    ]


def _copy(columns: Columns) -> Columns:
    """Returns the columns without the batch of which their arrays are views."""
    return blocks.select(columns, np.arange(len(columns)))


def _cut(
    state: PointState,
    part: StoredPart,
    name: str,
    columns: Columns,
    after: RecordKey | None,
    end: RecordKey | None,
) -> Section | None:
    """Returns the points of a part between two records, so far as they are in the state."""
    last = state.acked.get(part.first.attempt_id, 0)
    if end is not None and end[:2] == part.first[:2]:
        last = min(last, end.seq)
    keep = columns.seq <= last
    if after is not None and after[:2] == part.first[:2]:
        keep &= columns.seq > after.seq
    kept = blocks.select(columns, keep)
    if not len(kept):
        return None
    superseded = fence_chain.find_superseded(
        state.history, part.first.fence, kept.env_step, kept.update
    )
    return Section(name, part.first._replace(seq=int(kept.seq[0])), kept, superseded)
