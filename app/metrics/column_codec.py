"""Encodes columns of integers and of float64 as few bytes, every value exact to the last bit.

Integers of a constant difference are described by two numbers. Others are differences above the
smallest one, in as few bytes as the largest needs. Floats are stored as integers in units of 10^-k
or as float32 where that restores every bit, else unchanged. What a description does not tell is
stored as byte planes: the lowest byte of every value, then the next one, since the bytes of
neighbouring values resemble each other. All columns are compressed as one zstd frame.
"""

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LEVEL: Final = 1
_STRIDE: Final = 0
"""Integers `first + i * step`."""
_DIFFERENCES: Final = 1
"""Integers: `first`, then differences less `step`; 1 + log2 of their bytes is added to the kind."""
_DOUBLE: Final = 8
"""Floats unchanged."""
_SINGLE: Final = 9
"""Floats as float32."""
_DECIMAL: Final = 16
"""Floats as integers: this + 16 * (the number of decimals) + the kind of the integers."""
_DECIMALS: Final = (0, 3, 6)
_WIDTHS: Final = (1, 2, 4, 8)
_EXACT: Final = 2.0**53
_SAMPLE: Final = 64
_SMALL: Final = 2
"""Bytes per value up to which integers are smaller than float32 in any case."""

_local: Final = threading.local()


class ColumnDamagedError(ValueError):
    """The bytes are not valid columns."""


class _Integers(NamedTuple):
    kind: int
    first: int
    step: int
    planes: bytes


def encode(ints: Sequence[Ints], floats: Sequence[Floats]) -> bytes:
    """Returns columns of equal length, first those of integers."""
    head, planes = bytearray(), []
    for values in ints:
        found = _encode_integers(values)
        head.append(found.kind)
        _write_integers(head, found)
        planes.append(found.planes)
    planes += [_encode_floats(head, np.ascontiguousarray(one, np.float64)) for one in floats]
    body = b"".join(planes)
    if body:
        return bytes(head) + _get_compressor().compress(body)
    return bytes(head)


def decode(
    content: bytes | memoryview, count: int, ints: int, floats: int
) -> tuple[list[Ints], list[Floats]]:
    """Returns the columns that `encode` wrote.

    Args:
        content: The encoded columns.
        count: Number of values of each column.
        ints: Number of columns of integers.
        floats: Number of columns of floats.

    Raises:
        ColumnDamagedError: If `content` does not hold such columns.
    """
    try:
        return _Reader(content, count, ints + floats).read(ints)
    except (IndexError, OverflowError, zstandard.ZstdError) as error:
        raise ColumnDamagedError(str(error)) from error


class _Reader:
    def __init__(self, content: bytes | memoryview, count: int, columns: int) -> None:
        self._content = memoryview(content)
        self._count = count
        self._at = 0
        self._described = [self._read_description() for _ in range(columns)]
        sizes = [_count_plane_bytes(kind, count) for kind, _, _ in self._described]
        size = sum(sizes)
        self._planes: bytes = _decompress(self._content[self._at :], size) if size else b""
        self._ends = np.cumsum([0, *sizes]).tolist()

    def read(self, ints: int) -> tuple[list[Ints], list[Floats]]:
        columns = range(len(self._described))
        return (
            [self._read_integers(column) for column in columns[:ints]],
            [self._read_floats(column) for column in columns[ints:]],
        )

    def _read_description(self) -> tuple[int, int, int]:
        kind = self._content[self._at]
        self._at += 1
        if kind in {_DOUBLE, _SINGLE}:
            return kind, 0, 0
        return kind, self._read_varint(), self._read_varint()

    def _read_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._content[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (value >> 1) ^ -(value & 1)

    def _read_integers(self, column: int) -> Ints:
        kind, first, step = self._described[column]
        kind %= 16
        places = np.arange(self._count, dtype=np.int64)
        if kind == _STRIDE:
            return np.int64(first) + places * np.int64(step)
        if kind - _DIFFERENCES not in range(len(_WIDTHS)) or not self._count:
            raise ColumnDamagedError("a column holds no integers")
        rest = self._join(column, _WIDTHS[kind - _DIFFERENCES])
        values = places * np.int64(step)
        values[1:] += np.cumsum(rest.astype(np.uint64).view(np.int64))
        values += np.int64(first)
        return values

    def _read_floats(self, column: int) -> Floats:
        kind = self._described[column][0]
        if kind == _DOUBLE:
            return self._join(column, 8).view(np.float64)
        if kind == _SINGLE:
            return self._join(column, 4).view(np.float32).astype(np.float64)
        decimals = kind // 16 - 1
        if decimals not in _DECIMALS:
            raise ColumnDamagedError("a column holds no floats")
        scaled = self._read_integers(column).astype(np.float64)
        return scaled if not decimals else scaled / 10.0**decimals

    def _join(self, column: int, width: int) -> npt.NDArray[np.unsignedinteger]:
        begin, end = self._ends[column], self._ends[column + 1]
        planes = np.frombuffer(self._planes, np.uint8)[begin:end].reshape(width, -1)
        return np.ascontiguousarray(planes.T).reshape(-1).view(f"<u{width}")


def _encode_floats(head: bytearray, values: Floats) -> bytes:
    decimals, scaled = _find_decimals(values)
    single = None
    if scaled is None or scaled.kind > _DIFFERENCES + _WIDTHS.index(_SMALL):
        single = _narrow(values)
    if scaled is not None and (single is None or len(scaled.planes) < len(single)):
        head.append(_DECIMAL * (decimals + 1) + scaled.kind)
        _write_integers(head, scaled)
        return scaled.planes
    head.append(_DOUBLE if single is None else _SINGLE)
    return _split(values.astype("<f8", copy=False), 8) if single is None else single


def _find_decimals(values: Floats) -> tuple[int, _Integers | None]:
    """Returns the decimals of the values, and the values as integers; `None` if not exact."""
    for decimals in _DECIMALS:
        if _scale(values[:_SAMPLE], decimals) is not None:
            scaled = _scale(values, decimals)
            if scaled is not None:
                return decimals, _encode_integers(scaled)
    return 0, None


def _scale(values: Floats, decimals: int) -> Ints | None:
    factor = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(values * factor)
    if not bool(np.all(np.abs(scaled) <= _EXACT)):  # false for NaN too
        return None
    integers = scaled.astype(np.int64)
    restored = integers.astype(np.float64)
    if decimals:
        restored /= factor
    return integers if _is_same(restored, values) else None


def _narrow(values: Floats) -> bytes | None:
    """Returns the planes of a float32 column; `None` if it would not restore every bit."""
    for some in (values[:_SAMPLE], values):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            narrow = some.astype("<f4")
            if not _is_same(narrow.astype(np.float64), some):
                return None
    return _split(narrow, 4)


def _is_same(one: Floats, other: Floats) -> bool:
    return np.array_equal(one.view(np.int64), other.view(np.int64))


def _encode_integers(values: Ints) -> _Integers:
    if not len(values):
        return _Integers(_STRIDE, 0, 0, b"")
    first = int(values[0])
    if len(values) == 1:
        return _Integers(_STRIDE, first, 0, b"")
    with np.errstate(over="ignore"):
        differences = np.diff(values)
        step, most = int(differences.min()), int(differences.max())
        if step == most:
            return _Integers(_STRIDE, first, step, b"")
        above = (differences - np.int64(step)).view(np.uint64)
    largest = int(above.max())
    place = next(place for place, width in enumerate(_WIDTHS) if largest < 1 << 8 * width)
    planes = _split(above.astype(f"<u{_WIDTHS[place]}"), _WIDTHS[place])
    return _Integers(_DIFFERENCES + place, first, step, planes)


def _write_integers(head: bytearray, found: _Integers) -> None:
    for number in (found.first, found.step):
        value = number << 1 if number >= 0 else (-number << 1) - 1
        while value > 127:
            head.append(value & 127 | 128)
            value >>= 7
        head.append(value)


def _count_plane_bytes(kind: int, count: int) -> int:
    if kind == _DOUBLE:
        return 8 * count
    if kind == _SINGLE:
        return 4 * count
    kind %= 16
    if kind == _STRIDE:
        return 0
    return _WIDTHS[kind - _DIFFERENCES] * max(0, count - 1)


def _split(values: npt.NDArray[np.generic], width: int) -> bytes:
    return values.view(np.uint8).reshape(-1, width).T.tobytes()


def _get_compressor() -> zstandard.ZstdCompressor:
    """Returns the compressor of this thread: it may not be shared, and making one is slow."""
    found: zstandard.ZstdCompressor | None = getattr(_local, "compressor", None)
    if found is None:
        found = _local.compressor = zstandard.ZstdCompressor(_LEVEL, write_checksum=False)
    return found


def _decompress(content: memoryview, size: int) -> bytes:
    if zstandard.frame_content_size(content) != size:
        raise ColumnDamagedError("the columns have another length")
    found: zstandard.ZstdDecompressor | None = getattr(_local, "decompressor", None)
    if found is None:
        found = _local.decompressor = zstandard.ZstdDecompressor()
    return found.decompress(content)
