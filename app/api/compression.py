"""Compresses large JSON answers and negotiates the coding of files (RFC 9110, section 12.5.3).

Answers with secrets are never compressed: next to text that an attacker chose, the length of a
compressed answer reveals them bit by bit (BREACH). Only reads are compressed, and not those of
logins and tokens. Event streams and stored files are not changed.
"""

import asyncio
import gzip
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import zstandard
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.read_requests import is_read

LEAST: Final = 1_400
"""Bytes below which an answer is not compressed, since it fits into one packet."""
_MAX_ACCEPTED_BYTES: Final = 1_000
"""Bytes of `Accept-Encoding` that are read."""
_LEVEL: Final = 4
"""Compresses three times as fast as the default level; the result has a tenth more bytes."""
_MAX_BYTES_ON_LOOP: Final = 32_768
_SECRETS: Final = ("/api/v1/session", "/api/v1/tokens")
_JSON: Final = frozenset({b"application/json", b"application/problem+json"})


def choose_coding(accepted: str, offered: Sequence[str]) -> str | None:
    """Returns the first of the offered codings that an `Accept-Encoding` header permits.

    `None` if it permits none of them.
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(",")[:20]:
        name, _, parameter = part.partition(";")
        weights[name.strip()] = _weight(parameter)
    taken = (name for name in offered if weights.get(name, weights.get("*", 0.0)) > 0.0)
    return next(taken, None)


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


class Compression:
    """ASGI middleware that compresses answers, inside of `Guard`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request.

        Compresses an answer whose body is a single message of at least `LEAST` bytes.
        """
        if scope["type"] != "http" or not _is_public_enough(scope):
            await self._app(scope, receive, send)
            return
        accepted = _find(scope["headers"], b"accept-encoding")[:_MAX_ACCEPTED_BYTES]
        answer = _Answer(send, _choose(accepted))
        await self._app(scope, receive, answer.send)


def _is_public_enough(scope: Scope) -> bool:
    path = scope["path"]
    return is_read(scope) and path.startswith("/api/") and not path.startswith(_SECRETS)


class _Answer:
    """Delays the start of a response until the first part of its body is known."""

    def __init__(self, send: Send, coding: str | None) -> None:
        self._send = send
        self._coding = coding
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Sends an ASGI message to the client; the start of the response waits for the body."""
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            message = await self._compressed(start, message)
            await self._send(start)
        await self._send(message)

    async def _compressed(self, start: Message, message: Message) -> Message:
        body = message.get("body", b"")
        if message.get("more_body", False) or len(body) < LEAST:
            return message
        headers = MutableHeaders(scope=start)
        headers.add_vary_header("Accept-Encoding")
        if self._coding is None:
            return message
        compress, most = _COMPRESSORS[self._coding]
        body = compress(body) if len(body) <= most else await asyncio.to_thread(compress, body)
        headers["Content-Encoding"] = self._coding
        headers["Content-Length"] = str(len(body))
        return {**message, "body": body}


def _is_json(start: Message) -> bool:
    headers = start["headers"]
    media_type = _find(headers, b"content-type").partition(b";")[0]
    # A strong tag names the bytes that are sent, a weak one also stands for compressed ones.
    is_exact = not _find(headers, b"etag", b"W/").startswith(b"W/")
    return media_type in _JSON and not _find(headers, b"content-encoding") and not is_exact


def _find(headers: Iterable[tuple[bytes, bytes]], name: bytes, default: bytes = b"") -> bytes:
    """Returns the value of the first header of a name; ASGI has names in lower case."""
    return next((value for found, value in headers if found == name), default)


@lru_cache(256)
def _choose(accepted: bytes) -> str | None:
    return choose_coding(accepted.decode("latin-1"), tuple(_COMPRESSORS))


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(body)


_COMPRESSORS: Final[dict[str, tuple[Callable[[bytes], bytes], int]]] = {
    # Takes a fifth of the time of gzip for a list of 100 runs, and the result is not longer.
    "zstd": (_zstd, 8 * _MAX_BYTES_ON_LOOP),
    "gzip": (_gzip, _MAX_BYTES_ON_LOOP),
}
"""Codings, the preferred one first, and the bytes up to which they are not called in a thread."""
