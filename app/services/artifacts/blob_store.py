"""The blob store: files under random names in one directory.

A name that a user chose never becomes a path here.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from app.domain.errors import DomainError, InvalidError, StorageFullError, UnavailableError
from palestra.contract.sizes import format_size

Result = TypeVar("Result")

CHUNK: Final = 1_048_576
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK})
"""Error numbers of a file system that cannot give a file another name."""
_ID: Final = re.compile(r"^[0-9a-f]{32}$")
_TEMPORARY: Final = "incoming"
_ORPHAN_SECONDS: Final = 3_600.0
_TRIAL_BYTES: Final = 64 * 1024
_RESERVED_SHARE: Final = 20
"""The reserve is at most this part of the disk, so that small disks can be used too."""
FULL: Final = "The disk of the server's artifact store is full."


@dataclass(frozen=True, slots=True)
class ReceivedContent:
    """Content that was written to the store; it is deleted later unless a row refers to it."""

    blob_id: str
    size: int
    sha256: str


class BlobStore:
    """A directory of files with random names.

    Args:
        directory: Directory of the files; created with the first one.
        reserve: Bytes that uploads leave free on its disk, at most a twentieth of the disk.
    """

    def __init__(self, directory: Path, reserve: int = 0) -> None:
        self._directory = directory
        self._reserve = reserve
        self.is_full = False
        """Whether the latest upload failed because the disk, or a quota, was full."""

    def path(self, blob_id: str) -> Path:
        """Returns the path of a blob's file."""
        if not _ID.fullmatch(blob_id):
            raise ValueError("not a blob's id")
        return self._directory / blob_id[:2] / blob_id

    def nearest_directory(self) -> Path:
        """Returns the store's directory, or its nearest existing parent while nothing is stored."""
        return next(
            path
            for path in (self._directory.absolute(), *self._directory.absolute().parents)
            if path.is_dir()
        )

    def room(self) -> int:
        """Returns the number of bytes that uploads may still use.

        Negative if the free space is below the reserve.
        """
        disk = shutil.disk_usage(self.nearest_directory())
        return disk.free - min(self._reserve, disk.total // _RESERVED_SHARE)

    def check_room(self, size: int = 1) -> None:
        """Checks that the disk and the quota have space for `size` bytes.

        Raises:
            StorageFullError: If they do not.
        """
        room = max(0, self.room())
        if size > room:
            message = (
                f"{FULL} {format_size(size)} were to be stored and {format_size(room)} "
                "may be used. Free some space there."
            )
            raise StorageFullError(message)

    def try_out(self) -> None:
        """Writes and deletes a small file, to check whether a full disk has space again.

        Raises:
            StorageFullError: If the disk is still full.
        """
        self.check_room()
        path = self._directory / _TEMPORARY / secrets.token_hex(16)
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.write_bytes(bytes(_TRIAL_BYTES))
            self.is_full = False
        except OSError as error:
            raise self._failure(error) from error
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    async def receive(
        self, chunks: AsyncIterator[bytes], *, size: int, sha256: str
    ) -> ReceivedContent:
        """Writes content to a temporary file, verifies it, and moves it to its place.

        The file is synchronised to disk before the rename, the directory after it.

        Raises:
            InvalidError: `size_mismatch` or `hash_mismatch`; nothing is left behind.
            StorageFullError: If the disk is full, or becomes full while writing.
            UnavailableError: If the disk fails in another way.
        """
        await _in_thread(self.check_room, size)
        blob_id = secrets.token_hex(16)
        temporary = self._directory / _TEMPORARY / blob_id
        try:
            await _in_thread(temporary.parent.mkdir, 0o700, True, True)
            received = await _write(temporary, chunks, size)
            _check(*received, size, sha256)
            await _in_thread(self._keep, temporary, blob_id)
        except OSError as error:
            raise self._failure(error) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        self.is_full = False
        return ReceivedContent(blob_id, *received)

    def _failure(self, error: OSError) -> DomainError:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            self.is_full = True
            return StorageFullError(f"{FULL} Free some space there.")
        return UnavailableError(
            "storage_failed",
            f"The server could not store the content: {error.strerror}.",
            retry_after=30,
        )

    def copy(self, blob_ids: Sequence[str]) -> list[str]:
        """Copies blobs under new IDs, by hard links where the file system has them.

        Returns the new IDs. After an hour, the sweep deletes new files to which no row refers.

        Raises:
            StorageFullError: If there is no room for a copy.
            UnavailableError: If the disk fails in another way.
        """
        copies = [secrets.token_hex(16) for _ in blob_ids]
        try:
            for blob_id, copy_id in zip(blob_ids, copies, strict=True):
                self._link(self.path(blob_id), self.path(copy_id))
            for directory in {self.path(copy_id).parent for copy_id in copies}:
                _sync_directory(directory)
        except OSError as error:
            self.delete(copies)
            raise self._failure(error) from error
        return copies

    def _link(self, source: Path, target: Path) -> None:
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        # The sweep must not take the link for an old file before its row is committed.
        os.utime(source)
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self.check_room(source.stat().st_size)
            shutil.copyfile(source, target)
            with target.open("rb") as file:
                os.fsync(file.fileno())

    def delete(self, blob_ids: Iterable[str]) -> None:
        """Deletes files; missing ones are ignored."""
        for blob_id in blob_ids:
            self.path(blob_id).unlink(missing_ok=True)

    def list_old_files(self) -> list[str]:
        """Returns the ids of all files that are older than an hour.

        Unfinished uploads of that age are deleted.
        """
        before = time.time() - _ORPHAN_SECONDS
        for path in self._directory.glob(f"{_TEMPORARY}/*"):
            if _changed(path) < before:
                path.unlink(missing_ok=True)
        return [
            path.name
            for path in self._directory.glob("[0-9a-f][0-9a-f]/*")
            if _ID.fullmatch(path.name) and _changed(path) < before
        ]

    def _keep(self, temporary: Path, blob_id: str) -> None:
        target = self.path(blob_id)
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        temporary.rename(target)
        _sync_directory(target.parent)


async def _write(path: Path, chunks: AsyncIterator[bytes], limit: int) -> tuple[int, str]:
    """Writes and syncs chunks; stops early beyond `limit`. Returns size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with await _in_thread(path.open, "xb") as file:
        async for chunk in _join_chunks(chunks):
            size += len(chunk)
            if size > limit:
                break
            await _in_thread(_append, file, digest, chunk)
        await _in_thread(_sync, file)
    return size, digest.hexdigest()


async def _join_chunks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Joins small chunks to pieces of 1 MiB, to reduce the calls of the writing thread."""
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        if len(held) >= CHUNK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _append(file: Any, digest: Any, chunk: bytes) -> None:
    file.write(chunk)
    digest.update(chunk)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _check(size: int, sha256: str, declared: int, expected: str) -> None:
    if size != declared:
        more = "more" if size > declared else str(size)
        raise InvalidError(
            "size_mismatch",
            f"Declared were {declared} bytes, {more} arrived. Nothing was kept; send it again.",
        )
    if sha256 != expected:
        raise InvalidError(
            "hash_mismatch",
            "The content does not have the declared SHA-256. Nothing was kept; send it again.",
        )


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _in_thread(call: Callable[..., Result], *arguments: Any) -> Result:
    return await asyncio.to_thread(call, *arguments)
