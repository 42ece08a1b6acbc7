"""Sends several stored files as one ZIP archive, which is made while it is sent."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fastapi.responses import StreamingResponse

from app.api.download import CHUNK, SAFE_HEADERS, describe_attachment
from app.written_bytes import WrittenBytes

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


async def _send(files: Sequence[ArchivedFile]) -> AsyncIterator[bytes]:
    parts = _write(files)
    # One thread at a time: reading and the checksums do not hold the event loop.
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


def _write(files: Sequence[ArchivedFile]) -> Iterator[bytes]:
    written = WrittenBytes()
    with ZipFile(written, "w", ZIP_STORED) as archive:
        for file in files:
            entry = ZipInfo(file.name)
            entry.file_size = file.size
            with archive.open(entry, "w") as target, file.path.open("rb") as source:
                while chunk := source.read(CHUNK):
                    target.write(chunk)
                    yield written.take()
    yield written.take()
