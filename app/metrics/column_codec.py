"""Encodes columns of integers and of float64 as few bytes, every value exact to the last bit.

Integers of a constant difference are described by two numbers. Others are differences above the
smallest one, in as few bytes as the largest needs. Floats are stored as integers in units of 10^-k
or as float32 where that restores every bit, else unchanged. What a description does not tell is
stored as byte planes: the lowest byte of every value, then the next one, since the bytes of
neighbouring values resemble each other. All columns are compressed as one zstd frame.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import zstandard

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)

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
    return decode_many([(content, count)], ints, floats)


def decode_many(
    parts: Sequence[tuple[bytes | memoryview, int]], ints: int, floats: int
) -> tuple[list[Ints], list[Floats]]:
    """Returns columns like `decode`, those of several contents one after the other.

    Args:
        parts: Each content, with the number of values of each of its columns.
        ints: Number of columns of integers.
        floats: Number of columns of floats.

    Raises:
        ColumnDamagedError: If a content does not hold such columns.
    """
    try:
        read = [_Content(content, count, ints + floats) for content, count in parts]
        columns = range(ints + floats)
        return (
            [_decode_kinds(read, column, _decode_integers) for column in columns[:ints]],
            [_decode_kinds(read, column, _decode_floats) for column in columns[ints:]],
        )
    except (IndexError, OverflowError, zstandard.ZstdError) as error:
        raise ColumnDamagedError(str(error)) from error


def decode_two(
    content: bytes | memoryview, count: int, columns: int, ints: int, floats: int
) -> tuple[Ints, Floats]:
    """Returns one column of integers and one of floats.

    Args:
        content: The encoded columns.
        count: Number of values of each column.
        columns: Number of columns.
        ints: Place of the column of integers.
        floats: Place of the column of floats.

    Raises:
        ColumnDamagedError: If `content` does not hold such columns.
    """
    try:
        read = [_Content(content, count, columns)]
        return (
            _decode_kinds(read, ints, _decode_integers),
            _decode_kinds(read, floats, _decode_floats),
        )
    except (IndexError, OverflowError, zstandard.ZstdError) as error:
        raise ColumnDamagedError(str(error)) from error


class _Content:
    """Encoded columns, decompressed."""

    def __init__(self, content: bytes | memoryview, count: int, columns: int) -> None:
        self._content = memoryview(content)
        self._at = 0
        self.count = count
        self.described = [self._read_description() for _ in range(columns)]
        """Kind of each column, with the first value and step of integers."""
        self.begins = [0]
        for kind, _, _ in self.described:
            self.begins.append(self.begins[-1] + _count_plane_bytes(kind, count))
        size = self.begins[-1]
        self.planes: bytes = _decompress(self._content[self._at :], size) if size else b""

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


def _decode_kinds(
    contents: Sequence[_Content],
    column: int,
    decode_kind: Callable[[Sequence[_Content], int, int], npt.NDArray[Number]],
) -> npt.NDArray[Number]:
    """Returns one column of all contents; those of one kind are decoded together."""
    kinds = [content.described[column][0] for content in contents]
    different = set(kinds)
    if len(different) == 1:
        return decode_kind(contents, column, kinds[0])
    places = np.repeat(kinds, [content.count for content in contents])
    found = np.empty(len(places), np.float64 if decode_kind is _decode_floats else np.int64)
    for kind in different:
        some = [content for content in contents if content.described[column][0] == kind]
        found[places == kind] = decode_kind(some, column, kind)
    return cast("npt.NDArray[Number]", found)


def _decode_integers(contents: Sequence[_Content], column: int, kind: int) -> Ints:
    kind %= 16
    counts = [content.count for content in contents]
    firsts, steps = (
        _repeat([content.described[column][place] for content in contents], counts)
        for place in (1, 2)
    )
    begins = np.cumsum([0, *counts[:-1]])
    places = np.arange(sum(counts), dtype=np.int64)
    if len(contents) > 1:
        places -= np.repeat(begins, counts)
    values: Ints = places * steps
    if kind != _STRIDE:
        if kind - _DIFFERENCES not in range(len(_WIDTHS)) or not all(counts):
            raise ColumnDamagedError("a column holds no integers")
        above = np.zeros(len(places), np.int64)
        is_above = np.ones(len(places), np.bool_)
        is_above[begins] = False
        joined = _join_planes(contents, column, _WIDTHS[kind - _DIFFERENCES], less=1)
        above[is_above] = joined.astype(np.uint64).view(np.int64)
        # Sums wrap around, so a difference of two of them is exact whatever came before.
        sums = np.cumsum(above)
        values += sums if len(contents) == 1 else sums - np.repeat(sums[begins], counts)
    values += firsts
    return values


def _decode_floats(contents: Sequence[_Content], column: int, kind: int) -> Floats:
    if kind == _DOUBLE:
        return _join_planes(contents, column, 8).view(np.float64)
    if kind == _SINGLE:
        return _join_planes(contents, column, 4).view(np.float32).astype(np.float64)
    decimals = kind // 16 - 1
    if decimals not in _DECIMALS:
        raise ColumnDamagedError("a column holds no floats")
    scaled = _decode_integers(contents, column, kind).astype(np.float64)
    return scaled if not decimals else scaled / 10.0**decimals


def _repeat(values: Sequence[int], counts: Sequence[int]) -> Ints | np.int64:
    return (
        np.int64(values[0]) if len(values) == 1 else np.repeat(np.array(values, np.int64), counts)
    )


def _join_planes(
    contents: Sequence[_Content], column: int, width: int, *, less: int = 0
) -> npt.NDArray[np.unsignedinteger]:
    """Returns values of `width` bytes, of each content `less` fewer than it has rows."""
    spans = [(one.planes, one.begins[column], one.count - less) for one in contents]
    total = sum(size for _, _, size in spans)
    found = np.empty((total, width), np.uint8)
    for place in range(width):
        plane = b"".join(
            planes[begin + place * size : begin + (place + 1) * size]
            for planes, begin, size in spans
        )
        found[:, place] = np.frombuffer(plane, np.uint8)
    return found.reshape(-1).view(f"<u{width}")


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
