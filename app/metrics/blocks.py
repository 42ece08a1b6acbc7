"""Blocks: consecutive points of one series, as compressed columns.

A block is a header and the columns that `app.metrics.column_codec` writes, so every value is
restored bit by bit. Never pickle; a damaged block is refused.
"""

import struct
from collections.abc import Sequence
from typing import Final

from app.metrics import column_codec, point_tables
from app.metrics.column_codec import ColumnDamagedError
from app.metrics.columns import (
    UNKNOWN,
    BlockDamagedError,
    Columns,
    Floats,
    Ints,
    concatenate,
    empty,
    select,
)

__all__ = [
    "MAX_POINTS",
    "UNKNOWN",
    "BlockDamagedError",
    "Columns",
    "Floats",
    "Ints",
    "concatenate",
    "decode",
    "decode_counter",
    "empty",
    "encode",
    "select",
]

MAX_POINTS: Final = 65_536
"""Most points of a block that the compactor writes."""

_HEADER: Final = struct.Struct("<4sBBI")
_MAGIC: Final = b"PCB2"
_KIND: Final = 2
_INTS: Final = ("seq", "env_step", "update", "episode")
_FLOATS: Final = ("wall", "value")
_MAX_POINTS: Final = 2**28


def encode(columns: Columns) -> bytes:
    """Returns the block that holds `columns`."""
    names = list(columns.extra)
    ints = [*(getattr(columns, name) for name in _INTS), *columns.extra.values()]
    floats = [getattr(columns, name) for name in _FLOATS]
    head = _HEADER.pack(_MAGIC, _KIND, len(names), len(columns))
    return head + ",".join(names).encode() + b"\n" + column_codec.encode(ints, floats)


def decode(content: bytes) -> Columns:
    """Returns the points of a block, or of a series of tables (`point_tables.SERIES_MAGIC`).

    Raises:
        BlockDamagedError: If `content` is not a valid block.
    """
    if content.startswith(point_tables.SERIES_MAGIC):
        return point_tables.decode_series(content)
    try:
        return _columns(*_open(content))
    except (struct.error, ColumnDamagedError, ValueError) as error:
        raise BlockDamagedError(str(error)) from error


def decode_counter(content: bytes, axis: str) -> tuple[Ints, Floats]:
    """Returns a counter of the points of a block, and their values.

    Three of four columns are left out, whose decoding takes longer than all else that a query of a
    narrow range needs.

    Raises:
        BlockDamagedError: If `content` is not a valid block.
    """
    if not content.startswith(_MAGIC):
        columns = decode(content)
        return getattr(columns, axis), columns.value
    try:
        count, names, data = _open(content)
        places = len(_INTS) + len(names) + len(_FLOATS)
        return column_codec.decode_two(data, count, places, _INTS.index(axis), places - 1)
    except (struct.error, ColumnDamagedError, ValueError) as error:
        raise BlockDamagedError(str(error)) from error


def _open(content: bytes) -> tuple[int, Sequence[str], bytes]:
    """Returns the number of points, the names of further columns, and the encoded columns."""
    magic, kind, extras, count = _HEADER.unpack_from(content)
    if (magic, kind) != (_MAGIC, _KIND) or count > _MAX_POINTS:
        raise BlockDamagedError("not a block of this version")
    head, end, data = content[_HEADER.size :].partition(b"\n")
    if not end:
        raise BlockDamagedError("the block is truncated")
    return count, head.decode().split(",") if extras else [], data


def _columns(count: int, names: Sequence[str], data: bytes) -> Columns:
    ints, (wall, value) = column_codec.decode(data, count, len(_INTS) + len(names), len(_FLOATS))
    extra = dict(zip(names, ints[len(_INTS) :], strict=True))
    return Columns(ints[0], ints[1], ints[2], ints[3], wall, value, extra)
