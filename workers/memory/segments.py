"""Rows on disk in append-only files that snapshots share: a snapshot writes the rows since the last one and names the rest.

A segment is written into a temporary file, synced and renamed, and never changed afterwards; its name holds a part of its SHA-256, so that
two histories which went on from one snapshot do not meet in one file. What counts is what a manifest names: a file that a crash left
behind is not named anywhere, and `prune` takes it away. Owns the files of one directory; knows nothing of memories and of manifests.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from workers.core.errors import SnapshotUnreadableError
from workers.core.types import Array

_NEW: Final = ".tmp"
_ENDING: Final = ".npz"
_FIELD: Final = "row."
_CHUNK: Final = 1 << 20

Read = Callable[[int, int], Mapping[str, Array]]
"""Returns the rows [begin, end) in order, one array [end - begin, ...] per field; `Stream.read`."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of rows, as a manifest names it."""

    name: str
    first: int
    """Number of its first row."""
    count: int
    """Its rows, at least 1."""
    size: int
    """In bytes."""
    sha256: str

    @property
    def end(self) -> int:
        """Number of the row behind its last."""
        return self.first + self.count

    def to_dict(self) -> dict[str, Any]:
        """Returns it as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Returns what `to_dict` gave.

        Raises:
            SnapshotUnreadableError: If it is nothing of that kind, or its name is none of a segment.
        """
        try:
            segment = cls(**document)
            numbers = segment.first >= 0 and segment.count >= 1 and segment.size >= 0
        except TypeError as error:
            raise SnapshotUnreadableError(f"this names no segment: {error}") from error
        if not numbers or not segment.name.endswith(_ENDING) or Path(segment.name).name != segment.name:
            raise SnapshotUnreadableError(f"{segment.name!r} names no segment of rows")
        return segment


class SegmentStore:
    """The segments of one directory.

    Args:
        directory: Where they lie; it is created.
        most_rows: Rows of a file. The smaller, the sooner the files of overwritten rows can go.
    """

    def __init__(self, directory: Path, *, most_rows: int = 65_536) -> None:
        if most_rows < 1:
            raise ValueError(f"most_rows must be at least 1, not {most_rows}")
        self._directory = directory
        self._most_rows = most_rows
        directory.mkdir(parents=True, exist_ok=True)

    def append(self, known: Sequence[Segment], first: int, end: int, read: Read) -> tuple[Segment, ...]:
        """Writes those of the rows [first, end) that `known` does not have, and returns the segments that hold all of them.

        Args:
            known: What the last call of this history returned, `()` at its beginning. Segments without a row from `first` on are left out.
            first: Number of the oldest row that is needed.
            end: Number behind the newest.
            read: Called for rows that are to be written.

        Raises:
            ValueError: If `known` is of another history: it has rows from `end` on, or gaps.
            OSError: If the disk is full or fails; what was there is as it was.
        """
        kept = [segment for segment in known if segment.end > first]
        if kept and kept[-1].end > end:
            raise ValueError(f"rows up to {kept[-1].end} are stored already, {end} were written: give the segments of this history")
        if kept:
            _check_covered(kept, first, kept[-1].end, ValueError)
        begin = kept[-1].end if kept else first
        written = [self._write(at, min(at + self._most_rows, end), read) for at in range(begin, end, self._most_rows)]
        if written:
            _sync(self._directory)
        return (*kept, *written)

    def load(self, segments: Sequence[Segment], end: int, room: int) -> dict[str, Array]:
        """Returns what a ring held: its last rows by place, number i at i % room, one array [min(end, room), ...] per field.

        Args:
            segments: What `append` returned.
            end: Number behind the newest row.
            room: Rows that the ring holds. No field is known where `end` is 0.

        Raises:
            SnapshotUnreadableError: If a file is missing, torn or not what was written, or if the segments do not hold these rows.
        """
        first = max(0, end - room)
        needed = [segment for segment in segments if segment.end > first and segment.first < end]
        _check_covered(needed, first, end, SnapshotUnreadableError)
        ring: dict[str, Array] = {}
        for segment in needed:
            begin, behind = max(first, segment.first), min(end, segment.end)
            rows = {name: row[begin - segment.first : behind - segment.first] for name, row in self._read(segment).items()}
            ring = ring or {name: np.empty((end - first, *row.shape[1:]), row.dtype) for name, row in rows.items()}
            if _layout(rows) != _layout(ring):
                raise SnapshotUnreadableError(f"{segment.name} holds other fields than the segments before it")
            for name, column in ring.items():
                column[np.arange(begin, behind) % room] = rows[name]
        return ring

    def prune(self, manifests: Iterable[Iterable[Segment]]) -> tuple[str, ...]:
        """Removes every file that no manifest names, and returns the names of what is gone.

        Args:
            manifests: The segments that each snapshot which is kept names, that one included which is about to be written.
        """
        named = {segment.name for segments in manifests for segment in segments}
        endings = (_ENDING, _NEW)
        gone = sorted(path.name for path in self._directory.iterdir() if path.name.endswith(endings) and path.name not in named)
        for name in gone:
            (self._directory / name).unlink(missing_ok=True)
        return tuple(gone)

    def _write(self, begin: int, end: int, read: Read) -> Segment:
        temporary = self._directory / f"{begin}-{end}{_NEW}"
        try:
            with temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **{_FIELD + name: column for name, column in read(begin, end).items()})
                file.flush()
                os.fsync(file.fileno())
            size, digest = _digest(temporary)
            name = f"{begin:012}-{end:012}-{digest[:16]}{_ENDING}"
            temporary.rename(self._directory / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return Segment(name, begin, end - begin, size, digest)

    def _read(self, segment: Segment) -> dict[str, Array]:
        path = self._directory / segment.name
        try:
            if _digest(path) != (segment.size, segment.sha256):
                raise SnapshotUnreadableError(f"{segment.name} is not what was written: size or SHA-256 differ")
            with np.load(path, allow_pickle=False) as archive:
                rows = {name.removeprefix(_FIELD): archive[name] for name in archive.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise SnapshotUnreadableError(f"{segment.name} cannot be read: {error}") from error
        if any(len(column) != segment.count for column in rows.values()):
            raise SnapshotUnreadableError(f"{segment.name} does not hold the {segment.count} rows that it is said to")
        return rows


def _check_covered(segments: Sequence[Segment], first: int, end: int, error: type[Exception]) -> None:
    """Raises `error` unless the segments follow one another and hold the rows [first, end)."""
    at = first
    for number, segment in enumerate(segments):
        if segment.first > at or (number and segment.first != at):
            raise error(f"the segments lack the rows from {at} on, or have some twice: the next is {segment.name}")
        at = segment.end
    if at < end:
        raise error(f"the segments lack the rows from {at} to {end}")


def _layout(rows: Mapping[str, Array]) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Returns shape and dtype of a row, by field."""
    return {name: (column.shape[1:], column.dtype) for name, column in rows.items()}


def _digest(path: Path) -> tuple[int, str]:
    """Returns size and SHA-256 of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def _sync(directory: Path) -> None:
    """Forces the entries of a directory to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
