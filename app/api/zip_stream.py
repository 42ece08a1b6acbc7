"""Sends several stored files as one ZIP archive, which is made while it is sent."""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fastapi.responses import StreamingResponse

from app.api.download import CHUNK, SAFE_HEADERS, describe_attachment

ZIP_TYPE: Final = "application/zip"


class ArchivedFile(NamedTuple):
    """A file of an archive."""

    name: str
    """Its path within the archive."""
    path: Path
    size: int


def respond_with_zip(name: str, files: Sequence[ArchivedFile]) -> StreamingResponse:
    """Returns the answer that sends files as an archive of a name; they are not compressed.

    The content of snapshots hardly compresses, and the length is not known before: an archive whose
    transfer was interrupted has no directory at its end, and no program unpacks it silently.
    """
    headers = {**SAFE_HEADERS, "Content-Type": ZIP_TYPE}
    headers |= {"Content-Disposition": describe_attachment(name), "Accept-Ranges": "none"}
    return StreamingResponse(_send(files), 200, headers)


class _Outbox(io.RawIOBase):
    """Collects what is written until it is taken; cannot seek, so sizes follow the content."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """Returns what was written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


async def _send(files: Sequence[ArchivedFile]) -> AsyncIterator[bytes]:
    parts = _write(files)
    # One thread at a time: reading and the checksums do not hold the event loop.
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


def _write(files: Sequence[ArchivedFile]) -> Iterator[bytes]:
    outbox = _Outbox()
    with ZipFile(outbox, "w", ZIP_STORED) as archive:
        for file in files:
            entry = ZipInfo(file.name)
            entry.file_size = file.size
            with archive.open(entry, "w") as target, file.path.open("rb") as source:
                while chunk := source.read(CHUNK):
                    target.write(chunk)
                    yield outbox.take()
    yield outbox.take()
