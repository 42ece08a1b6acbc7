"""Stores the rows of a stream in segment files, each of which holds a range of row indices.

Segments that an earlier snapshot has already are hard links to its files. So each snapshot is
complete by itself and needs disk space only for new rows. Segments begin at multiples of a fixed
number of rows, so each segment but the newest is written once. The files are not verified here, but
with the manifest that lists them.
"""

import contextlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from workers.core.errors import SnapshotUnreadableError
from workers.core.row_stream import RowStream
from workers.core.types import Array, JsonObject

SEGMENT_BYTES: Final = 32 << 20
"""Approximate size of the rows in a segment. The newest segment is written again with each snapshot
until it is full.
"""
_FIELD: Final = "row."


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with a range of rows."""

    name: str
    first: int
    """Index of its first row in the stream."""
    end: int
    """One past the index of its last row (exclusive end)."""


def write_stream(directory: Path, name: str, stream: RowStream, before: Path | None) -> JsonObject:
    """Writes the files of a stream, and returns the JSON that `read_stream` needs.

    Args:
        directory: Output directory.
        name: Prefix of the file names; must be the same for each snapshot of a stream.
        stream: The rows to write.
        before: Directory of an earlier snapshot of the same history, whose files are hard-linked
            where they hold the same rows; `None` for none.

    Raises:
        OSError: If the disk is full or fails.
    """
    there = [] if before is None else _segments_in(before, name)
    length = _rows_of_segment(stream)
    segments: list[Segment] = []
    for begin in range(stream.first // length * length, stream.end, length):
        first, end = max(begin, stream.first), min(begin + length, stream.end)
        segment = next((one for one in there if one.first <= first and one.end == end), None)
        if (
            before is None
            or segment is None
            or not _try_link(before / segment.name, directory / segment.name)
        ):
            segment = _write(directory, name, stream, first, end)
        segments.append(segment)
    if not segments:
        segments.append(
            _write(directory, name, stream, 0, 0)
        )  # The first row gives the names of the fields.
    return {"end": stream.end, "room": stream.room, "files": [segment.name for segment in segments]}


def read_stream(directory: Path, document: JsonObject) -> dict[str, Array]:
    """Returns the stored rows as one array per field, at their positions in the ring buffer.

    Args:
        directory: Directory of a verified snapshot.
        document: Return value of `write_stream`.

    Raises:
        SnapshotUnreadableError: If the files do not hold these rows.
    """
    end, room = int(document["end"]), int(document["room"])
    segments = [_parse_segment(name) for name in document["files"]]
    if not end:
        return _read(directory, segments[0])
    at = first = max(0, end - room)
    ring: dict[str, Array] = {}
    for segment in segments:
        if segment.first > at or segment.end <= at:
            raise SnapshotUnreadableError(
                f"the rows from {at} on are missing: the next are in {segment.name}"
            )
        rows = {name: row[at - segment.first :] for name, row in _read(directory, segment).items()}
        ring = ring or {
            name: np.empty((end - first, *row.shape[1:]), row.dtype) for name, row in rows.items()
        }
        if _layout(rows) != _layout(ring):
            raise SnapshotUnreadableError(
                f"{segment.name} holds other fields than the files before it"
            )
        places = np.arange(at, segment.end) % room
        for name, column in ring.items():
            column[places] = rows[name]
        at = segment.end
    if at != end:
        raise SnapshotUnreadableError(f"the rows from {at} to {end} are missing")
    return ring


def _rows_of_segment(stream: RowStream) -> int:
    row = sum(column[:1].nbytes for column in stream.columns.values())
    return max(1, SEGMENT_BYTES // max(1, row))


def _segments_in(directory: Path, name: str) -> Sequence[Segment]:
    return [_parse_segment(path.name) for path in directory.glob(f"{name}.*-*.npz")]


def _parse_segment(name: str) -> Segment:
    """Parses the name of a segment's file."""
    try:
        first, end = name.split(".")[-2].split("-")
        segment = Segment(name, int(first), int(end))
    except (AttributeError, IndexError, ValueError):
        raise SnapshotUnreadableError(f"{name!r} names no rows of a stream") from None
    if Path(name).name != name:
        raise SnapshotUnreadableError(f"{name!r} names no file of a snapshot")
    return segment


def _try_link(old: Path, new: Path) -> bool:
    # The file system may have no links, or the old snapshot may have been deleted meanwhile.
    with contextlib.suppress(OSError):
        os.link(old, new)
        return True
    return False


def _write(directory: Path, name: str, stream: RowStream, first: int, end: int) -> Segment:
    segment = Segment(f"{name}.{first:012}-{end:012}.npz", first, end)
    with (directory / segment.name).open("wb") as file:
        np.savez(
            file,
            allow_pickle=False,
            **{_FIELD + field: column for field, column in stream.read(first, end).items()},
        )
    return segment


def _read(directory: Path, segment: Segment) -> dict[str, Array]:
    try:
        with (
            (directory / segment.name).open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            rows = {name.removeprefix(_FIELD): archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise SnapshotUnreadableError(f"{segment.name} cannot be read: {error}") from error
    if any(len(column) != segment.end - segment.first for column in rows.values()):
        raise SnapshotUnreadableError(f"{segment.name} does not hold the rows that its name states")
    return rows


def _layout(rows: Mapping[str, Array]) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
    """Returns shape and dtype of a row, by field."""
    return {name: (column.shape[1:], column.dtype) for name, column in rows.items()}
