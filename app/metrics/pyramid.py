"""The pyramid of a block: aggregates over cells of x whose width is a power of two.

A cell of level k holds the points whose position shifted right by k bits is the cell's key, so
cells of different blocks have common borders and can be merged when they are read. Positions are
integers: steps, or milliseconds for times. A pyramid has even levels alone: the lowest with some
64 points per cell, the highest with at most `MAX_TOP_CELLS` cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from app.metrics import column_codec
from app.metrics.blocks import Columns
from app.metrics.column_codec import ColumnDamagedError, Floats, Ints

AXES: Final = ("env_step", "update", "episode", "wall")
"""Axes with a pyramid; the number of an axis is its place here."""
LEAST_POINTS: Final = 8_192
"""Points from which a block has pyramids."""
LEAST_LIVE_POINTS: Final = 4_096
"""The same while more points follow."""
MAX_LEVEL: Final = 62
MAX_TOP_CELLS: Final = 4
"""Cells of the highest level, at most, unless they are too far apart."""
_POINTS_PER_CELL: Final = 32
"""Least mean number of points per cell on the lowest level; levels are even, so 32 to 128."""
_MILLISECONDS: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class Cells:
    """Aggregates of points over cells of one level, with keys in ascending order.

    `low`, `high`, `mean` and `last` are over finite values, NaN in a cell without one.
    """

    key: Ints
    n: Ints
    nonfinite: Ints
    at: Ints
    """Place of the last finite value in the order of the points; -1 in a cell without one."""
    low: Floats
    high: Floats
    mean: Floats
    last: Floats

    def __len__(self) -> int:
        return len(self.key)


def find_positions(columns: Columns, axis: str) -> Ints:
    """Returns the position of each point on an axis: the counter, or milliseconds for `wall`."""
    if axis == "wall":
        return np.rint(columns.wall * _MILLISECONDS).astype(np.int64)
    found: Ints = getattr(columns, axis)
    return found


def aggregate(positions: Ints, values: Floats, level: int, *, places: Ints | None = None) -> Cells:
    """Returns the cells of points.

    Args:
        positions: Position of each point, in any order.
        values: Value of each point; may be NaN or infinite.
        level: Level of the cells.
        places: Place of each point in the order of the curve's points, ascending; 0, 1, ... by
            default.
    """
    if places is None:
        places = np.arange(len(values))
    finite = np.isfinite(values)
    if bool(finite.all()):
        cells = _aggregate_finite(positions >> level, values, places)
        if bool(np.isfinite(cells.mean).all()):
            return cells
    count = finite.astype(np.int64)
    at = np.where(finite, places, -1)
    kept = np.where(finite, values, np.nan)
    points = Cells(positions, np.ones_like(positions), 1 - count, at, kept, kept, kept, kept)
    return coarsen(points, level)


def _aggregate_finite(key: Ints, values: Floats, places: Ints) -> Cells:
    """Returns the cells of finite points; means are infinite where a sum overflows."""
    order = _find_order(key)
    if order is not None:
        key, values, places = key[order], values[order], places[order]
    firsts = _find_firsts(key)
    n = np.diff(np.append(firsts, len(key)))
    low, high = np.fmin.reduceat(values, firsts), np.fmax.reduceat(values, firsts)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.add.reduceat(values, firsts) / n
    mean = np.where(np.isfinite(mean), np.clip(mean, low, high), mean)
    # The order is stable, so the last point of a cell is the one with the highest place.
    ends = firsts + n - 1
    nonfinite = np.zeros(len(firsts), np.int64)
    return Cells(key[firsts], n, nonfinite, places[ends], low, high, mean, values[ends])


def coarsen(cells: Cells, levels: int) -> Cells:
    """Merges cells into those `levels` higher; cells with the same key are merged in any case."""
    key = cells.key >> levels
    order = _find_order(key)
    if order is not None:
        key, cells = key[order], _take(cells, order)
    firsts = _find_firsts(key)
    if len(firsts) == len(key):
        return replace(cells, key=key)
    return _merge(key[firsts], cells, firsts)


def join(parts: Sequence[Cells]) -> Cells:
    """Merges cells of the same level."""
    return coarsen(concatenate(parts), 0)


def renumber(cells: Cells, keys: Ints, buckets: int, rows: Ints) -> Cells:
    """Returns the cells with keys in [0, `buckets`), each key raised by `buckets` per row.

    Args:
        cells: Cells of several curves.
        keys: New key of each cell.
        buckets: Number of keys of a curve.
        rows: Number of each cell's curve.
    """
    inside = (keys >= 0) & (keys < buckets)
    return _take(replace(cells, key=keys + buckets * rows), inside)


def build(positions: Ints, values: Floats) -> dict[int, Cells]:
    """Returns the levels of a block's pyramid."""
    lowest = find_lowest_level(positions)
    cells = aggregate(positions, values, lowest)
    found = {lowest: cells}
    level = lowest
    while len(cells) > MAX_TOP_CELLS and level + 2 <= MAX_LEVEL:
        cells = coarsen(cells, 2)
        level += 2
        found[level] = cells
    return found


def find_lowest_level(positions: Ints) -> int:
    """Returns the lowest even level on which cells hold enough points on average."""
    ordered = np.sort(positions)
    most = max(1, len(positions) // _POINTS_PER_CELL)
    span = int(ordered[-1]) - int(ordered[0])
    level = max(0, (span // most).bit_length() + 1) // 2 * 2
    level = min(level, MAX_LEVEL)
    while level >= 2 and _count_cells(ordered, level - 2) <= most:
        level -= 2
    return level


def encode(cells: Cells) -> bytes:
    """Returns cells as bytes: few cells as plain records, read faster, more cells as columns."""
    if len(cells) <= _MAX_PLAIN:
        records = np.empty(len(cells), _RECORD)
        for name in _FIELDS:
            records[name] = getattr(cells, name)
        return _PLAIN + records.tobytes()
    ints = [getattr(cells, name) for name in _INTS]
    floats = [getattr(cells, name) for name in _FLOATS]
    return _COLUMNS + len(cells).to_bytes(4, "little") + column_codec.encode(ints, floats)


def decode(parts: Sequence[tuple[int, bytes]]) -> Cells:
    """Returns the cells that `encode` wrote, those of all parts one after the other.

    Args:
        parts: For each block the place of its first point in the order of the curve's points, and
            the encoded cells.

    Raises:
        ColumnDamagedError: If a content holds no cells.
    """
    return decode_parts(parts)[0]


def decode_parts(parts: Sequence[tuple[int, bytes]]) -> tuple[Cells, Ints]:
    """Returns cells like `decode`, and for each cell the number of its part."""
    numbers: list[int] = []
    sizes: list[int] = []
    found: list[Cells] = []
    for form, decode_form in ((_COLUMNS, _decode_columns), (_PLAIN, _decode_plain)):
        some = [number for number, (_, content) in enumerate(parts) if content[:1] == form]
        if some:
            cells, counts = decode_form([parts[number] for number in some])
            found.append(cells)
            numbers += some
            sizes += counts
    if len(numbers) != len(parts):
        raise ColumnDamagedError("a content holds no cells")
    return concatenate(found), np.repeat(np.array(numbers, np.int64), sizes)


def pack_levels(levels: Sequence[tuple[int, int]]) -> int:
    """Returns the lowest and highest level of each axis as one number; 0 for no levels."""
    packed = 0
    for lowest, highest in reversed(levels):
        packed = packed << 12 | (lowest + 1) << 6 | (highest + 1)
    return packed


def choose_level(packed: int, axis: int, most: int) -> int | None:
    """Returns the highest level of an axis that is at most `most`.

    Args:
        packed: What `pack_levels` returned for a block.
        axis: Place of the axis in `AXES`.
        most: Level of the wanted cells.

    Returns:
        The level; `None` if the block has no such level, so that its points must be read.
    """
    found = packed >> 12 * axis
    lowest, highest = (found >> 6 & 63) - 1, (found & 63) - 1
    if lowest < 0 or lowest > most:
        return None
    return min(highest, most // 2 * 2)


def place(cells: Cells, first_key: int, buckets: int) -> Cells:
    """Returns the cells of `buckets` consecutive keys, those without points included.

    Args:
        cells: Cells of one level, each key once.
        first_key: Key of the first bucket.
        buckets: Number of buckets.
    """
    index = cells.key - first_key
    inside = (index >= 0) & (index < buckets)
    cells, index = _take(cells, inside), index[inside]
    found = Cells(
        np.arange(first_key, first_key + buckets, dtype=np.int64),
        np.zeros(buckets, np.int64),
        np.zeros(buckets, np.int64),
        np.full(buckets, -1, np.int64),
        *np.full((4, buckets), np.nan),
    )
    for name in _FIELDS[1:]:
        getattr(found, name)[index] = getattr(cells, name)
    return found


_INTS: Final = ("key", "n", "nonfinite", "at")
_FLOATS: Final = ("low", "high", "mean", "last")
_FIELDS: Final = (*_INTS, *_FLOATS)
_RECORD: Final = np.dtype(
    [(name, "<i8" if name == "key" else "<i4") for name in _INTS]
    + [(name, "<f8") for name in _FLOATS]
)
_MAX_PLAIN: Final = 64
_PLAIN: Final = b"\0"
_COLUMNS: Final = b"\1"


def _decode_plain(parts: Sequence[tuple[int, bytes]]) -> tuple[Cells, list[int]]:
    joined = b"".join(content[1:] for _, content in parts)
    sizes, rests = zip(
        *(divmod(len(content) - 1, _RECORD.itemsize) for _, content in parts), strict=True
    )
    if any(rests):
        raise ColumnDamagedError("cells are truncated")
    records = np.frombuffer(joined, _RECORD)
    columns = {name: records[name].astype(np.int64) for name in _INTS}
    columns["at"] = _move(columns["at"], parts, sizes)
    low, high, mean, last = (np.ascontiguousarray(records[name]) for name in _FLOATS)
    return Cells(**columns, low=low, high=high, mean=mean, last=last), list(sizes)


def _decode_columns(parts: Sequence[tuple[int, bytes]]) -> tuple[Cells, list[int]]:
    sizes = [int.from_bytes(content[1:5], "little") for _, content in parts]
    contents = [
        (memoryview(content)[5:], size) for (_, content), size in zip(parts, sizes, strict=True)
    ]
    ints, floats = column_codec.decode_many(contents, len(_INTS), len(_FLOATS))
    key, n, nonfinite, at = ints
    return Cells(key, n, nonfinite, _move(at, parts, sizes), *floats), sizes


def _move(at: Ints, parts: Sequence[tuple[int, bytes]], sizes: Sequence[int]) -> Ints:
    """Returns places in a curve of points whose places in their blocks are given."""
    offsets = np.repeat(np.array([first for first, _ in parts], np.int64), sizes)
    return np.where(at < 0, -1, at + offsets)


def concatenate(parts: Sequence[Cells]) -> Cells:
    """Returns the cells of all parts one after the other."""
    if len(parts) == 1:
        return parts[0]
    joined = {name: [getattr(part, name) for part in parts] for name in _FIELDS}
    return Cells(**{name: np.concatenate(columns) for name, columns in joined.items()})


def _take(cells: Cells, order: npt.NDArray[np.generic]) -> Cells:
    return Cells(*(getattr(cells, name)[order] for name in _FIELDS))


def _find_order(key: Ints) -> Ints | None:
    """Returns the stable order in which keys ascend; `None` if they do."""
    is_ordered = not bool(np.any(key[1:] < key[:-1]))
    return None if is_ordered else np.argsort(key, kind="stable")


def _find_firsts(key: Ints) -> Ints:
    """Returns the place of the first of each group of equal keys, which are in order."""
    is_first = np.empty(len(key), np.bool_)
    is_first[:1] = True
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _count_cells(ordered: Ints, level: int) -> int:
    key = ordered >> level
    return int(np.count_nonzero(key[1:] != key[:-1])) + 1


def _merge(key: Ints, cells: Cells, firsts: Ints) -> Cells:
    sizes = np.diff(np.append(firsts, len(cells)))
    n = np.add.reduceat(cells.n, firsts)
    nonfinite = np.add.reduceat(cells.nonfinite, firsts)
    finite = n - nonfinite
    low, high = np.fmin.reduceat(cells.low, firsts), np.fmax.reduceat(cells.high, firsts)
    counted = cells.n - cells.nonfinite
    mean = np.where(finite > 0, _average(cells.mean, counted, finite, firsts), np.nan)
    mean = np.clip(mean, low, high)
    at = np.maximum.reduceat(cells.at, firsts)
    is_last = np.flatnonzero((cells.at == np.repeat(at, sizes)) & (cells.at >= 0))
    last = np.full(len(firsts), np.nan)
    groups = np.repeat(np.arange(len(firsts)), sizes)
    last[groups[is_last]] = cells.last[is_last]
    return Cells(key, n, nonfinite, at, low, high, mean, last)


def _average(means: Floats, counted: Ints, totals: Ints, firsts: Ints) -> Floats:
    """Returns the means of groups of cells, weighted by their counts; 0 without a finite value."""
    means = np.where(counted > 0, means, 0.0)
    most = np.maximum(totals, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        found: Floats = np.add.reduceat(means * counted, firsts) / most
    overflowed = ~np.isfinite(found)
    if bool(overflowed.any()):
        # A sum of shares cannot overflow, but shares of denormal numbers are rounded to 0.
        sizes = np.diff(np.append(firsts, len(means)))
        shares = np.add.reduceat(means * (counted / np.repeat(most, sizes)), firsts)
        found[overflowed] = shares[overflowed]
    return found
