"""Sends stored content as a whole or as one byte range (RFC 9110, section 14).

It is always sent as an attachment, which no browser runs.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fastapi import Response

from app.api.closing_response import ClosingResponse
from app.api.errors import HttpProblemError
from palestra.contract.resources import ArtifactView

CHUNK: Final = 262_144
_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_MAX_HEADER: Final = 64
SAFE_HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    # A browser asks again each time: who was logged out has the files no more.
    "Cache-Control": "private, no-cache",
    "Accept-Ranges": "bytes",
}
_PLAYED: Final = {".mp4": "video/mp4", ".jpg": "image/jpeg"}
"""Media types that the dashboard plays for the kind `video`; browsers execute no code in them."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The bytes from `first` to `last`, both inclusive, of content of `size` bytes.

    `last` is `first - 1` for empty content.
    """

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        """Number of bytes to send."""
        return self.last - self.first + 1


def parse_range(header: str | None, if_range: str | None, view: ArtifactView) -> Slice | None:
    """Returns the byte range that a request asks for; `None` for the whole content.

    Several ranges, other units and malformed headers are answered with the whole content, as the
    standard permits.

    Raises:
        HttpProblemError: 416 for a range beyond the content.
    """
    match = _RANGE.fullmatch(header) if header is not None and len(header) <= _MAX_HEADER else None
    if (
        match is None
        or match.group(1) == match.group(2) == ""
        or if_range not in {None, build_etag(view)}
    ):
        return None
    first_text, last_text = match.groups()
    if first_text and last_text and int(last_text) < int(first_text):
        return None
    first = int(first_text) if first_text else max(0, view.size - int(last_text))
    last = min(int(last_text), view.size - 1) if first_text and last_text else view.size - 1
    if first > last:
        message = f"The artifact has {view.size} bytes. Ask for a range within."
        raise HttpProblemError(
            416, "range_not_satisfiable", message, headers={"Content-Range": f"bytes */{view.size}"}
        )
    return Slice(first, last, view.size)


def respond_not_modified(view: ArtifactView) -> Response:
    """Returns the answer to a client that has the content already."""
    headers = {"Cache-Control": SAFE_HEADERS["Cache-Control"], "ETag": build_etag(view)}
    return Response(status_code=304, headers=headers)


def respond_with_attachment(view: ArtifactView, path: Path, part: Slice | None) -> ClosingResponse:
    """Returns the answer that sends an artifact's content or a part of it."""
    sent = part or Slice(0, view.size - 1, view.size)
    headers = {
        **SAFE_HEADERS,
        "Content-Type": _media_type(view),
        "Content-Disposition": describe_attachment(view.name),
        "ETag": build_etag(view),
        "Content-Length": str(sent.length),
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{part.size}"
    content = _read(path, sent)
    status = 206 if part is not None else 200
    return ClosingResponse(content, headers, content.aclose, status_code=status)


def build_etag(view: ArtifactView) -> str:
    """Returns the entity tag of an artifact's content."""
    return f'"{view.sha256}"'


def _media_type(view: ArtifactView) -> str:
    return (
        _PLAYED.get(view.name[-4:], SAFE_HEADERS["Content-Type"])
        if view.kind == "video"
        else SAFE_HEADERS["Content-Type"]
    )


def describe_attachment(name: str) -> str:
    """Returns the header `Content-Disposition` of a file, without its folders."""
    base = name.rsplit("/", 1)[-1]
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", base)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(base, safe='')}"


async def _read(path: Path, part: Slice) -> AsyncGenerator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        await asyncio.to_thread(file.seek, part.first)
        left = part.length
        while left > 0 and (chunk := await asyncio.to_thread(file.read, min(CHUNK, left))):
            left -= len(chunk)
            yield chunk
