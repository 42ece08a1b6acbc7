"""The spool: an append-only, numbered file of telemetry records on the worker's disk.

A spool is a directory of segments `<first seq, 20 digits>.seg` and a `lock`. A record's `seq` is
its ordinal, from 1; it is stored only as the order of the frames, so several processes
append under one lock and never disagree. A killed writer leaves at most one torn frame at the very
end, which the next append cuts off. Readers take no lock: they stop before a frame that is not
whole yet.

An append is one `write()` and no fsync: a killed process keeps its page cache, and after a host
crash the attempt is new anyway.

    writer = SpoolWriter(directory)
    last_seq = writer.append([record, ...])     # append_raw takes encoded records
    reader = SpoolReader(directory, after_seq=acked)
    batch = reader.read()                       # consecutive records; empty where nothing is new
"""

import errno
import fcntl
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from palestra.contract.telemetry import MAX_BATCH_BYTES, MAX_BATCH_RECORDS, RunRecord
from palestra.telemetry.framing import (
    HEADER,
    MAX_PAYLOAD_BYTES,
    BrokenFrameError,
    encode_frames,
    iterate_frames,
)
from palestra.telemetry.record_splitting import split_to_fit

SEGMENT_BYTES: Final = 8 * 1024 * 1024
"""Size from which the next append begins a new segment.

It limits how much a reader scans to find a record.
"""

_LOCK_NAME: Final = "lock"
_SUFFIX: Final = ".seg"
_READ_BYTES: Final = 256 * 1024


class SpoolDamagedError(RuntimeError):
    """A frame in the middle of the spool is damaged.

    Nothing is cut off, since records follow it.
    """


@dataclass(frozen=True, slots=True)
class SpoolBatch:
    """Consecutive records as they are encoded in the spool."""

    first_seq: int
    """Number of the first record; where there is none, the number that the next one will have."""
    payloads: tuple[bytes, ...]
    """One JSON document per record."""

    @property
    def last_seq(self) -> int:
        """Number of the last record; `first_seq - 1` where there is none."""
        return self.first_seq + len(self.payloads) - 1


@dataclass(slots=True)
class _Tail:
    """The position of the spool's end, as of a writer's last append."""

    first_seq: int
    descriptor: int
    offset: int
    last_seq: int


class SpoolWriter:
    """Appends records. Safe for several threads and for several processes with a writer each.

    Args:
        directory: The spool's directory; it is created.
        segment_bytes: Size from which a new segment begins.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._mutex = threading.Lock()
        self._lock = os.open(directory / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._tail: _Tail | None = None

    def append(self, records: Iterable[RunRecord]) -> int:
        """Appends `records` in one piece.

        Columns too long for one batch are split into several records.

        Returns:
            The seq of the last record of the spool.

        Raises:
            OSError: If the disk is full (`ENOSPC`) or fails; nothing of `records` is then in the
                spool.
            SpoolDamagedError: If the spool is damaged.
        """
        return self.append_raw(
            [payload for record in records for payload in split_to_fit(record, MAX_PAYLOAD_BYTES)]
        )

    def append_raw(self, payloads: Sequence[bytes]) -> int:
        """Appends records that are JSON already, in one piece; see `append`.

        Raises:
            ValueError: If a record is empty or too large.
        """
        frames = encode_frames(payloads)
        with self._exclusive():
            tail = self._advance()
            if frames:
                _write_whole(tail.descriptor, frames, tail.offset)
                tail.offset += len(frames)
                tail.last_seq += len(payloads)
            return tail.last_seq

    def last_seq(self) -> int:
        """Returns the seq of the last record, 0 for none; cuts a torn end off first."""
        return self.append_raw(())

    def close(self) -> None:
        """Closes the files. The writer cannot be used any more."""
        with self._mutex:
            if self._tail is not None:
                os.close(self._tail.descriptor)
                self._tail = None
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._mutex:
            if self._lock < 0:
                raise ValueError("the spool is closed")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _advance(self) -> _Tail:
        """Reads what other writers appended and cuts off a torn end.

        Begins a new segment where this one is full.
        """
        tail = self._tail or self._open_last()
        self._tail = tail
        while True:
            _catch_up(tail)
            successor = _segment_path(self._directory, tail.last_seq + 1)
            full = tail.offset >= self._segment_bytes
            if tail.offset == 0 or not (full or successor.exists()):
                return tail
            tail = self._switch(tail, successor)

    def _open_last(self) -> _Tail:
        firsts = _segment_firsts(self._directory)
        first = firsts[-1] if firsts else 1
        return _Tail(first, _open_segment(_segment_path(self._directory, first)), 0, first - 1)

    def _switch(self, tail: _Tail, successor: Path) -> _Tail:
        descriptor = _open_segment(successor)
        os.close(tail.descriptor)
        self._tail = _Tail(tail.last_seq + 1, descriptor, 0, tail.last_seq)
        return self._tail


class SpoolReader:
    """Reads records in order from any seq, which it locates by the segments' names.

    Args:
        directory: The spool's directory; it may not exist yet.
        after_seq: The first record read is the one after this.
    """

    def __init__(self, directory: Path, after_seq: int = 0) -> None:
        self._directory = directory
        self._descriptor = -1
        self._offset = 0
        self._at = 0
        self._wanted = after_seq

    @property
    def position(self) -> int:
        """Number of the last record that was read, or to which `seek` was called."""
        return self._wanted

    def seek(self, after_seq: int) -> None:
        """Sets the next record to the one after `after_seq`, backward or forward."""
        if after_seq != self._wanted:
            if after_seq < self._at:
                self.close()
            self._wanted = after_seq

    def read(
        self, max_records: int = MAX_BATCH_RECORDS, max_bytes: int = MAX_BATCH_BYTES - 1_024
    ) -> SpoolBatch:
        """Returns the next records within the bounds, at least one if there is one.

        `max_bytes` counts the records and one byte between two of them.

        Raises:
            SpoolDamagedError: If the next record is damaged.
        """
        first = self._wanted + 1
        payloads: list[bytes] = []
        size = 0
        for payload, end in self._pending():
            size += len(payload) + 1
            if payloads and size > max_bytes:
                break
            payloads.append(payload)
            self._offset, self._at = end, self._at + 1
            self._wanted = self._at
            if len(payloads) >= max_records:
                break
        return SpoolBatch(first, tuple(payloads))

    def close(self) -> None:
        """Closes the open segment; reading opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pending(self) -> Iterator[tuple[bytes, int]]:
        """Yields complete frames after `_wanted`.

        The reader's position advances only past frames that the caller has consumed.
        """
        if not self._find_place():
            return
        while True:
            chunk_at = self._offset
            yield from self._frames_at(chunk_at)
            if self._offset > chunk_at:
                continue
            successor = _segment_path(self._directory, self._at + 1)
            if self._offset == 0 or not successor.exists():
                return
            self._enter(successor, self._at)

    def _frames_at(self, offset: int) -> Iterator[tuple[bytes, int]]:
        chunk = _read_chunk(self._descriptor, offset)
        try:
            for frame in iterate_frames(chunk):
                yield frame.payload, offset + frame.end
        except BrokenFrameError as broken:
            if not broken.is_torn:
                raise SpoolDamagedError(
                    f"{self._directory}: record {self._at + 1} is damaged ({broken})"
                ) from None

    def _find_place(self) -> bool:
        """Opens the segment that holds the wanted record and scans to it.

        Returns false if the record does not exist yet.
        """
        if self._descriptor < 0:
            firsts = _segment_firsts(self._directory)
            index = bisect_right(firsts, self._wanted + 1) - 1
            if index < 0:
                return False
            self._enter(_segment_path(self._directory, firsts[index]), firsts[index] - 1)
        while self._at < self._wanted:
            before = self._at
            for _, end in self._frames_at(self._offset):
                self._offset, self._at = end, self._at + 1
                if self._at == self._wanted:
                    break
            if self._at == before and not self._follow():
                return False
        return True

    def _follow(self) -> bool:
        successor = _segment_path(self._directory, self._at + 1)
        if self._offset == 0 or not successor.exists():
            return False
        self._enter(successor, self._at)
        return True

    def _enter(self, path: Path, at: int) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.close()
        self._descriptor, self._offset, self._at = descriptor, 0, at


def read_spooled_seq(directory: Path) -> int:
    """Returns the seq of the last whole record of a spool, 0 for none; changes nothing."""
    firsts = _segment_firsts(directory)
    if not firsts:
        return 0
    with SpoolReader(directory, firsts[-1] - 1) as reader:
        while reader.read().payloads:
            pass
        return reader.position


def _catch_up(tail: _Tail) -> None:
    size = os.fstat(tail.descriptor).st_size
    while tail.offset < size:
        chunk = _read_chunk(tail.descriptor, tail.offset)
        start = tail.offset
        try:
            for frame in iterate_frames(chunk):
                tail.offset, tail.last_seq = start + frame.end, tail.last_seq + 1
        except BrokenFrameError as broken:
            if tail.offset > start:
                continue
            if not broken.is_torn or start + len(chunk) < size:
                raise SpoolDamagedError(
                    f"record {tail.last_seq + 1} is damaged ({broken}) and records follow it"
                ) from None
            os.ftruncate(tail.descriptor, tail.offset)
            return


def _read_chunk(descriptor: int, offset: int) -> bytes:
    """Returns about `_READ_BYTES` from `offset`, and at least the whole first frame."""
    chunk = os.pread(descriptor, _READ_BYTES, offset)
    if len(chunk) < _READ_BYTES:
        return chunk
    length, _ = HEADER.unpack_from(chunk)
    whole = HEADER.size + min(length, MAX_PAYLOAD_BYTES)
    return os.pread(descriptor, whole, offset) if whole > len(chunk) else chunk


def _write_whole(descriptor: int, data: bytes, offset: int) -> None:
    try:
        written = os.write(descriptor, data)
    except OSError:
        os.ftruncate(descriptor, offset)
        raise
    if written != len(data):
        os.ftruncate(descriptor, offset)
        raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes fitted on the disk")


def _open_segment(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _segment_path(directory: Path, first_seq: int) -> Path:
    return directory / f"{first_seq:020d}{_SUFFIX}"


def _segment_firsts(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob(f"*{_SUFFIX}"))
