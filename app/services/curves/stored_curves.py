"""Reads stored curves as cells of one level, from rollups where blocks have them.

A curve consists of parts: blocks, and batches that are not in blocks yet. Of a block whose points
all count, the rollups suffice; a block that a later attempt superseded in part is decoded, as one
without cells of the level is.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

import numpy as np

from app.db.engine import Session
from app.db.repositories import blocks as block_rows
from app.db.repositories import curve_queries as rows
from app.db.repositories.blocks import Tail
from app.db.repositories.curve_queries import BlockHead
from app.metrics import blocks, fence_chain, point_tables, pyramid
from app.metrics.columns import Columns, Floats, Ints
from app.metrics.fence_chain import Chain
from app.metrics.pyramid import Cells

Key = tuple[str, str]
"""Run and series."""
Order = tuple[int, str, int]
"""Fence, attempt and first record of a part."""

Decoded = TypeVar("Decoded")

_TOGETHER: Final = 12
"""Curves that are reduced together."""
_MAX_BYTES_ON_LOOP: Final = 65_536
"""Bytes up to which decoding takes less time than handing them to a thread."""


@dataclass(slots=True)
class _Part:
    """A block or a batch of a curve; `decoded` are its points that count, once they are decoded."""

    order: Order
    points: int
    head: BlockHead | None = None
    decoded: "_Points | None" = None


class _Points(NamedTuple):
    """Positions on the axis of a curve, and values."""

    positions: Ints
    values: Floats


@dataclass(slots=True)
class StoredCurve:
    """The parts of a curve, in the order of their points.

    Args:
        axis: Axis of the positions: a counter, or `wall`.
    """

    axis: str
    parts: list[_Part] = field(default_factory=list)
    cells: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Level and encoded cells by the ID of the block."""

    @property
    def span(self) -> tuple[int, int] | None:
        """Lowest and highest position; `None` without points."""
        lows, highs = [], []
        for part in self.parts:
            if part.decoded is None and part.head is not None:
                lows.append(part.head.low)
                highs.append(part.head.high)
            elif part.decoded is not None and len(part.decoded.positions):
                lows.append(int(part.decoded.positions.min()))
                highs.append(int(part.decoded.positions.max()))
        return (min(lows), max(highs)) if lows else None

    @property
    def undecoded(self) -> list[BlockHead]:
        """The blocks that are not decoded."""
        return [part.head for part in self.parts if part.decoded is None and part.head is not None]

    def list_points(self) -> tuple[Ints, Floats]:
        """Returns positions and values of the decoded parts, in order."""
        return _join([part.decoded for part in self.parts if part.decoded is not None])

    def list_encoded(self) -> list[tuple[int, int, bytes]]:
        """Returns level, place of the first point, and content of the cells that were read."""
        found: list[tuple[int, int, bytes]] = []
        place = 0
        for part in self.parts:
            if part.decoded is None and part.head is not None and part.head.id in self.cells:
                level, content = self.cells[part.head.id]
                found.append((level, place, content))
            place += part.points
        return found

    def aggregate_points(self, level: int, first_key: int, buckets: int) -> Cells | None:
        """Returns cells of the decoded points with consecutive keys; `None` without points."""
        points: list[tuple[int, _Points]] = []
        place = 0
        for part in self.parts:
            if part.decoded is not None:
                points.append((place, part.decoded))
            place += part.points
        if not points:
            return None
        positions, values = _join([one for _, one in points])
        places = np.concatenate([first + np.arange(len(one.values)) for first, one in points])
        keys = positions >> level
        inside = (keys >= first_key) & (keys < first_key + buckets)
        if not bool(inside.all()):
            positions, values, places = positions[inside], values[inside], places[inside]
        return pyramid.aggregate(positions, values, level, places=places)


def _join(points: Sequence[_Points]) -> _Points:
    if len(points) == 1:
        return points[0]
    positions, values = zip(_Points(*_NOTHING), *points, strict=True)
    return _Points(np.concatenate(positions), np.concatenate(values))


def reduce(
    curves: Sequence[StoredCurve], level: int, first_keys: Sequence[int], buckets: int
) -> Cells:
    """Returns cells of consecutive keys of a level, those of one curve after those of another.

    The cells of several curves are decoded and merged together, of no more than fit into the
    processor's cache.

    Args:
        curves: Curves of which the cells were read.
        level: Level of the cells.
        first_keys: First key of each curve.
        buckets: Number of keys of each curve.

    Returns:
        `buckets` cells of each curve, those without points included; keys are numbered from 0.
    """
    numbers = range(0, len(curves), _TOGETHER)
    reduced = [
        _reduce_some(
            curves[number : number + _TOGETHER],
            level,
            first_keys[number : number + _TOGETHER],
            buckets,
        )
        for number in numbers
    ]
    return pyramid.concatenate(reduced) if reduced else pyramid.aggregate(*_NOTHING, level)


def _reduce_some(
    curves: Sequence[StoredCurve], level: int, first_keys: Sequence[int], buckets: int
) -> Cells:
    encoded = [(row, *one) for row, curve in enumerate(curves) for one in curve.list_encoded()]
    found: list[Cells] = []
    if encoded:
        rows, levels, places, contents = zip(*encoded, strict=True)
        cells, parts = pyramid.decode_parts(list(zip(places, contents, strict=True)))
        row = np.array(rows, np.int64)[parts]
        shifts = level - np.array(levels, np.int64)[parts]
        keys = (cells.key >> shifts) - np.array(first_keys, np.int64)[row]
        found.append(pyramid.renumber(cells, keys, buckets, row))
    for number, (curve, first_key) in enumerate(zip(curves, first_keys, strict=True)):
        points = curve.aggregate_points(level, first_key, buckets)
        if points is not None:
            row = np.full(len(points), number)
            found.append(pyramid.renumber(points, points.key - first_key, buckets, row))
    joined = pyramid.join(found) if found else pyramid.aggregate(*_NOTHING, level)
    return pyramid.place(joined, 0, len(curves) * buckets)


_NOTHING: Final = (np.zeros(0, np.int64), np.zeros(0))


async def load(
    session: Session, keys: Collection[Key], axis: str, histories: Mapping[str, Chain]
) -> dict[Key, StoredCurve]:
    """Returns the parts of curves, so far as their ranges need them; blocks mostly undecoded."""
    curves = {key: StoredCurve(axis) for key in keys}
    run_ids = {run_id for run_id, _ in keys}
    heads, tails = await rows.load_parts(session, keys, run_ids, axis)
    for key, some in heads.items():
        curves[key].parts = [
            _Part((head.fence, head.attempt_id, head.first_seq), head.points, head)
            for head in some
            if _counts(histories.get(key[0], {}), head.fence)
        ]
    await _decode_partial(session, curves, histories)
    if sum(len(tail.content) for tail in tails) > _MAX_BYTES_ON_LOOP:
        await asyncio.to_thread(_add_tails, curves, tails, histories)
    else:
        _add_tails(curves, tails, histories)
    for curve in curves.values():
        curve.parts.sort(key=lambda part: part.order)
    return curves


async def load_cells(
    session: Session, curves: Iterable[StoredCurve], level: int, ranges: Sequence[tuple[int, int]]
) -> None:
    """Reads the cells of blocks, or their points where they have no such cells.

    Args:
        session: The session of `load`.
        curves: The curves.
        level: Level of the wanted cells.
        ranges: First key of each curve, and the number of keys.
    """
    wanted: list[tuple[StoredCurve, BlockHead, int]] = []
    raw: list[tuple[StoredCurve, BlockHead]] = []
    place = 0
    for curve, (first_key, keys) in zip(curves, ranges, strict=True):
        place = pyramid.AXES.index(curve.axis)
        for head in curve.undecoded:
            if head.high >> level < first_key or head.low >> level >= first_key + keys:
                continue
            chosen = pyramid.choose_level(head.levels, place, level)
            if chosen is None:
                raw.append((curve, head))
            else:
                wanted.append((curve, head, chosen))
    found = await rows.load_rollups(session, [(head, chosen) for _, head, chosen in wanted], place)
    for curve, head, chosen in wanted:
        curve.cells[head.id] = chosen, found[head.id]
    await decode_blocks(session, raw)


async def decode_blocks(
    session: Session, wanted: Collection[tuple[StoredCurve, BlockHead]]
) -> None:
    """Decodes blocks of which all points count."""
    contents = await block_rows.load_contents(session, [head.id for _, head in wanted])
    axes = {head.id: curve.axis for curve, head in wanted}

    def decode() -> dict[int, _Points]:
        return {one: _decode_points(content, axes[one]) for one, content in contents.items()}

    decoded = await _call(decode, contents)
    for curve in {id(curve): curve for curve, _ in wanted}.values():
        for part in curve.parts:
            if part.head is not None and part.head.id in decoded:
                part.decoded = decoded[part.head.id]


async def decode_end(session: Session, curve: StoredCurve) -> None:
    """Decodes the blocks that may hold the last finite point of a curve."""
    for head in sorted(curve.undecoded, key=lambda one: -one.high):
        positions, values = curve.list_points()
        finite = positions[np.isfinite(values)]
        if len(finite) and int(finite.max()) > head.high:
            return
        await decode_blocks(session, [(curve, head)])


async def find_origins(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns the earliest time of the points of each run that has points, in milliseconds."""
    found = await rows.load_first_walls(session, run_ids)
    for tail in await block_rows.load_tails(session, run_ids):
        for table in _decode(tail):
            columns = table.get_columns(next(iter(table.values)))
            first = int(pyramid.find_positions(columns, "wall").min())
            found[tail.run_id] = min(found.get(tail.run_id, first), first)
    return found


def _counts(history: Chain, fence: int) -> bool:
    return not history or fence in history


async def _decode_partial(
    session: Session, curves: Mapping[Key, StoredCurve], histories: Mapping[str, Chain]
) -> None:
    """Decodes the blocks that a later attempt may bound."""
    partial = [
        (key, part)
        for key, curve in curves.items()
        for part in curve.parts
        if part.head is not None and _is_bounded(part.head, histories.get(key[0], {}))
    ]
    contents = await block_rows.load_contents(
        session, [part.head.id for _, part in partial if part.head is not None]
    )

    def decode() -> dict[int, Columns]:
        return {block_id: blocks.decode(content) for block_id, content in contents.items()}

    decoded = await _call(decode, contents)
    for key, part in partial:
        assert part.head is not None
        history = histories.get(key[0], {})
        columns = select_history(decoded[part.head.id], part.head.fence, history)
        part.decoded = _find_points(columns, curves[key].axis)


async def _call(decode: Callable[[], Decoded], contents: Mapping[int, bytes]) -> Decoded:
    """Returns what `decode` does; large contents are decoded in a thread."""
    is_large = sum(map(len, contents.values())) > _MAX_BYTES_ON_LOOP
    return await asyncio.to_thread(decode) if is_large else decode()


def _decode_points(content: bytes, axis: str) -> _Points:
    if axis == "wall":
        return _find_points(blocks.decode(content), axis)
    return _Points(*blocks.decode_counter(content, axis))


def _find_points(columns: Columns, axis: str) -> _Points:
    return _Points(pyramid.find_positions(columns, axis), columns.value)


def _is_bounded(head: BlockHead, history: Chain) -> bool:
    bound = history.get(head.fence)
    return bound is not None and head.highest_env_step >= bound.env_step


def select_history(columns: Columns, fence: int, history: Chain) -> Columns:
    """Returns the points of an attempt that belong to the run's history."""
    superseded = fence_chain.find_superseded(history, fence, columns.env_step, columns.update)
    return blocks.select(columns, ~superseded)


def _decode(tail: Tail) -> list[point_tables.PointTable]:
    return point_tables.decode(tail.content)


def _add_tails(
    curves: Mapping[Key, StoredCurve], tails: Iterable[Tail], histories: Mapping[str, Chain]
) -> None:
    names: dict[str, set[str]] = {}
    for run_id, name in curves:
        names.setdefault(run_id, set()).add(name)
    for tail in tails:
        history = histories.get(tail.run_id, {})
        if not _counts(history, tail.fence):
            continue
        for name, columns in point_tables.join_series(_decode(tail), names[tail.run_id]).items():
            counted = select_history(columns, tail.fence, history)
            order = (tail.fence, tail.attempt_id, tail.first_seq)
            curve = curves[tail.run_id, name]
            points = _find_points(counted, curve.axis)
            curve.parts.append(_Part(order, len(columns), decoded=points))
