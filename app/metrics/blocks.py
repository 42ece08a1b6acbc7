"""Blocks: consecutive points of one series, as compressed columns.

A block is a header and the columns that `app.metrics.column_codec` writes, so every value is
restored bit by bit. Blocks of the first version (`PCB1`: one zlib stream, integers as differences,
floats unchanged) are read too. Never pickle; a damaged block is refused.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from app.metrics import column_codec
from app.metrics.column_codec import ColumnDamagedError

Ints = column_codec.Ints
Floats = column_codec.Floats

MAX_POINTS: Final = 65_536
"""Most points of a block that the compactor writes."""

UNKNOWN: Final = -1
"""Value in an extra column for a point that has none."""

_HEADER: Final = struct.Struct("<4sBBI")
_MAGIC: Final = b"PCB2"
_KIND: Final = 2
_FIRST_MAGIC: Final = b"PCB1"
_PLAIN: Final = 0
_ZLIB: Final = 1
_INTS: Final = ("seq", "env_step", "update", "episode")
_FLOATS: Final = ("wall", "value")
_MAX_POINTS: Final = 2**28


class BlockDamagedError(ValueError):
    """The bytes are not a valid block."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Points of one series in the order of their records.

    Attributes:
        seq: Record of the attempt that each point came with.
        env_step: Counter of the run at the point.
        update: Counter of the run at the point.
        episode: Counter of the run at the point.
        wall: Worker's clock in seconds since the Unix epoch.
        value: The value; may be NaN or infinite.
        extra: Further integer columns, kept for exports.
    """

    seq: Ints
    env_step: Ints
    update: Ints
    episode: Ints
    wall: Floats
    value: Floats
    extra: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def nonfinite(self) -> int:
        """The number of values that are NaN or infinite."""
        return int(len(self.value) - np.count_nonzero(np.isfinite(self.value)))


def empty() -> Columns:
    """Returns columns without points."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return Columns(none, none, none, none, nothing, nothing)


def encode(columns: Columns) -> bytes:
    """Returns the block that holds `columns`."""
    names = list(columns.extra)
    ints = [*(getattr(columns, name) for name in _INTS), *columns.extra.values()]
    floats = [getattr(columns, name) for name in _FLOATS]
    head = _HEADER.pack(_MAGIC, _KIND, len(names), len(columns))
    return head + ",".join(names).encode() + b"\n" + column_codec.encode(ints, floats)


def decode(content: bytes) -> Columns:
    """Returns the points of a block.

    Raises:
        BlockDamagedError: If `content` is not a valid block.
    """
    try:
        magic, kind, extras, count = _HEADER.unpack_from(content)
        is_first = magic == _FIRST_MAGIC and kind in {_PLAIN, _ZLIB}
        if not (is_first or (magic, kind) == (_MAGIC, _KIND)) or count > _MAX_POINTS:
            raise BlockDamagedError("not a block of this version")
        body = content[_HEADER.size :]
        if kind == _ZLIB:
            body = zlib.decompress(body)
        head, end, data = body.partition(b"\n")
        if not end:
            raise BlockDamagedError("the block is truncated")
        names = head.decode().split(",") if extras else []
        return _first_columns(data, count, names) if is_first else _columns(data, count, names)
    except (struct.error, zlib.error, ColumnDamagedError, ValueError) as error:
        raise BlockDamagedError(str(error)) from error


def concatenate(parts: Iterable[Columns]) -> Columns:
    """Returns the points of all parts, in their order.

    A part without one of the extra columns has `UNKNOWN` in it.
    """
    given = list(parts)
    if not given:
        return empty()
    if len(given) == 1:
        return given[0]
    join = np.concatenate
    names = dict.fromkeys(name for part in given for name in part.extra)
    return Columns(
        join([part.seq for part in given]),
        join([part.env_step for part in given]),
        join([part.update for part in given]),
        join([part.episode for part in given]),
        join([part.wall for part in given]),
        join([part.value for part in given]),
        {name: join([_get_extra(part, name) for part in given]) for name in names},
    )


def _get_extra(columns: Columns, name: str) -> Ints:
    found = columns.extra.get(name)
    return np.full(len(columns), UNKNOWN, np.int64) if found is None else found


def select(columns: Columns, keep: npt.NDArray[np.bool_] | slice) -> Columns:
    """Returns the points that `keep` selects."""
    if not isinstance(keep, slice) and bool(keep.all()):
        return columns
    return Columns(
        columns.seq[keep],
        columns.env_step[keep],
        columns.update[keep],
        columns.episode[keep],
        columns.wall[keep],
        columns.value[keep],
        {name: values[keep] for name, values in columns.extra.items()},
    )


def _columns(data: bytes, count: int, names: Sequence[str]) -> Columns:
    ints, (wall, value) = column_codec.decode(data, count, len(_INTS) + len(names), len(_FLOATS))
    extra = dict(zip(names, ints[len(_INTS) :], strict=True))
    return Columns(ints[0], ints[1], ints[2], ints[3], wall, value, extra)


def _first_columns(data: bytes, count: int, names: Sequence[str]) -> Columns:
    rows = len(_INTS) + len(names)
    if len(data) != 8 * count * (rows + len(_FLOATS)):
        raise BlockDamagedError("the block is truncated")
    ints = (
        np.frombuffer(data, "<i8", count * rows).reshape(rows, count).cumsum(axis=1, dtype=np.int64)
    )
    wall, value = np.frombuffer(data, "<f8", count * len(_FLOATS), 8 * count * rows).reshape(
        len(_FLOATS), count
    )
    extra = {name: ints[len(_INTS) + row] for row, name in enumerate(names)}
    return Columns(ints[0], ints[1], ints[2], ints[3], wall, value, extra)
