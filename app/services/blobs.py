"""The blob store: files under random names in one directory. No name of a user ever becomes a path here."""

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from app.domain.errors import InvalidError, UnavailableError

Result = TypeVar("Result")

CHUNK: Final = 1_048_576
_ID: Final = re.compile(r"^[0-9a-f]{32}$")
_TEMPORARY: Final = "incoming"
_ORPHAN_SECONDS: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Received:
    """Content that lies in the store; it is kept once a row names it."""

    blob_id: str
    size: int
    sha256: str


class BlobStore:
    """Files of a directory.

    Args:
        directory: Where they lie; made with the first one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, blob_id: str) -> Path:
        """Returns where a blob lies."""
        if not _ID.fullmatch(blob_id):
            raise ValueError("not a blob's id")
        return self._directory / blob_id[:2] / blob_id

    def nearest_directory(self) -> Path:
        """Returns the store's directory, or the one above that exists while nothing is stored."""
        return next(path for path in (self._directory.absolute(), *self._directory.absolute().parents) if path.is_dir())

    async def receive(self, chunks: AsyncIterator[bytes], *, size: int, sha256: str) -> Received:
        """Writes content to a temporary file, checks it, and moves it to its place: fsync, rename, fsync of the directory.

        Raises:
            InvalidError: `size_mismatch` or `hash_mismatch`; nothing is left behind.
            UnavailableError: `disk_full`.
        """
        blob_id = secrets.token_hex(16)
        temporary = self._directory / _TEMPORARY / blob_id
        try:
            await _in_thread(temporary.parent.mkdir, 0o700, True, True)
            received = await _write(temporary, chunks, size)
            _check(*received, size, sha256)
            await _in_thread(self._keep, temporary, blob_id)
        except OSError as error:
            raise UnavailableError("disk_full", f"The server could not store the content: {error.strerror}.", retry_after=30) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        return Received(blob_id, *received)

    def delete(self, blob_ids: Iterable[str]) -> None:
        """Deletes files; those that are gone already are fine."""
        for blob_id in blob_ids:
            self.path(blob_id).unlink(missing_ok=True)

    def old_files(self) -> list[str]:
        """Returns the ids of all files that are older than an hour; unfinished uploads of that age are deleted."""
        before = time.time() - _ORPHAN_SECONDS
        for path in self._directory.glob(f"{_TEMPORARY}/*"):
            if _changed(path) < before:
                path.unlink(missing_ok=True)
        return [path.name for path in self._directory.glob("[0-9a-f][0-9a-f]/*") if _ID.fullmatch(path.name) and _changed(path) < before]

    def _keep(self, temporary: Path, blob_id: str) -> None:
        target = self.path(blob_id)
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        temporary.rename(target)
        _sync_directory(target.parent)


async def _write(path: Path, chunks: AsyncIterator[bytes], limit: int) -> tuple[int, str]:
    """Writes and syncs chunks; stops early beyond `limit`. Returns size and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with await _in_thread(path.open, "xb") as file:
        async for chunk in _pieces(chunks):
            size += len(chunk)
            if size > limit:
                break
            await _in_thread(_append, file, digest, chunk)
        await _in_thread(_sync, file)
    return size, digest.hexdigest()


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Joins small chunks, so that a thread is asked once per MiB."""
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
        raise InvalidError("size_mismatch", f"Declared were {declared} bytes, {more} arrived. Nothing was kept; send it again.")
    if sha256 != expected:
        raise InvalidError("hash_mismatch", "The content does not have the declared SHA-256. Nothing was kept; send it again.")


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
