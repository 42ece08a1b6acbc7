"""Blocks: the points of one series that arrived together, as compressed columns.

A block is a header and one zlib stream (or plain bytes where that is shorter) of little-endian
columns: integers as differences, floats unchanged, so every value is restored bit by bit. Never
pickle; a damaged block is refused.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HEADER: Final = struct.Struct("<4sBBI")
_MAGIC: Final = b"PCB1"
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
    arrays: list[Ints] = [getattr(columns, name) for name in _INTS] + [
        columns.extra[name] for name in names
    ]
    body = ",".join(names).encode() + b"\n"
    body += np.diff(np.array(arrays, "<i8"), axis=1, prepend=0).tobytes()
    body += b"".join(
        np.ascontiguousarray(getattr(columns, name), "<f8").tobytes() for name in _FLOATS
    )
    packed = zlib.compress(body, 1)
    kind, content = (_ZLIB, packed) if len(packed) < len(body) else (_PLAIN, body)
    return _HEADER.pack(_MAGIC, kind, len(names), len(columns)) + content


def decode(content: bytes) -> Columns:
    """Returns the points of a block.

    Raises:
        BlockDamagedError: If `content` is not a valid block.
    """
    try:
        magic, kind, extras, count = _HEADER.unpack_from(content)
        if magic != _MAGIC or kind not in {_PLAIN, _ZLIB} or count > _MAX_POINTS:
            raise BlockDamagedError("not a block of this version")
        body = (
            zlib.decompress(content[_HEADER.size :]) if kind == _ZLIB else content[_HEADER.size :]
        )
        head, end, data = body.partition(b"\n")
        if not end:
            raise BlockDamagedError("the block is truncated")
        names = head.decode().split(",") if extras else []
        return _columns(data, count, names)
    except (struct.error, zlib.error, ValueError) as error:
        raise BlockDamagedError(str(error)) from error


def concatenate(parts: Iterable[Columns]) -> Columns:
    """Returns the points of all parts, in their order, without the extra columns."""
    given = list(parts)
    if not given:
        return empty()
    if len(given) == 1:
        return given[0]
    join = np.concatenate
    return Columns(
        join([part.seq for part in given]),
        join([part.env_step for part in given]),
        join([part.update for part in given]),
        join([part.episode for part in given]),
        join([part.wall for part in given]),
        join([part.value for part in given]),
    )


def select(columns: Columns, keep: npt.NDArray[np.bool_]) -> Columns:
    """Returns the points where `keep` is true, without the extra columns."""
    if bool(keep.all()):
        return columns
    return Columns(
        columns.seq[keep],
        columns.env_step[keep],
        columns.update[keep],
        columns.episode[keep],
        columns.wall[keep],
        columns.value[keep],
    )


def _columns(data: bytes, count: int, names: Sequence[str]) -> Columns:
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
