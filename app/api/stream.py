"""The live stream: server-sent events after a cursor (WHATWG HTML, section 9.2)."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Final

from fastapi import Response
from starlette.types import Receive, Scope, Send

from app.direct_answers import find_direct_answer
from app.domain.principal import Principal
from app.services.events.filters import StreamFilter
from app.services.events.frames import encode_frame
from app.services.events.hub import EventHub
from app.services.events.subscriptions import EventBatch, EventSubscription

PING_SECONDS: Final = 15.0
SEND_SECONDS: Final = 20.0
"""Seconds after which a client that reads nothing is disconnected."""

_OPENING: Final = b"retry: 1000\n\n"
_RELOAD: Final = {"reason": "load the history again"}
_HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class EventStream(Response):
    """The answer of the events routes.

    Args:
        hub: Source of the events.
        filters: Select the events that the client may see and has requested.
        caller: The caller whose credential opens the stream; `app.services.access.stream_rights`
            closes the stream when the credential has ended.
        after: For each filter the cursor; `None` begins with the next event.
        numbered: Whether the first line of each frame's data names the filters that took it.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        hub: EventHub,
        filters: Sequence[StreamFilter],
        caller: Principal,
        *,
        after: Sequence[int | None],
        numbered: bool = False,
    ) -> None:
        super().__init__(headers=_HEADERS)
        self._hub = hub
        self._filters = filters
        self._numbered = numbered
        self._caller = caller
        self._after = after
        self._room = contextlib.ExitStack()
        self._stream: EventSubscription | None = None

    def reserve(self) -> "EventStream":
        """Reserves one of the limited streams, before the answer begins.

        Raises:
            DomainError: If the limit is reached.
        """
        self._stream = self._room.enter_context(
            self._hub.open(self._filters, self._caller, numbered=self._numbered)
        )
        return self

    # Starlette calls a response with these three arguments of ASGI.
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends events until the client leaves, the login ends, or the server stops."""
        assert self._stream is not None
        direct = find_direct_answer(scope)
        if direct is not None:
            self._stream.write_now = direct.write
        with self._room:
            leaving = asyncio.create_task(_until_gone(receive, self._stream))
            try:
                await send(
                    {
                        "type": "http.response.start",
                        "status": 200,
                        "headers": [*self.raw_headers_of_stream],
                    }
                )
                await self._send_all(self._stream, send)
            except (TimeoutError, OSError):
                return  # the client takes nothing any more
            finally:
                leaving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await leaving

    @property
    def raw_headers_of_stream(self) -> list[tuple[bytes, bytes]]:
        """The headers without a length, since the answer has none."""
        return [(name, value) for name, value in self.raw_headers if name != b"content-length"]

    async def _send_all(self, stream: EventSubscription, send: Send) -> None:
        await _write(send, _OPENING)
        async for content in self._frames(stream):
            await _write(send, content)
        await _write(send, b"", last=True)

    async def _frames(self, stream: EventSubscription) -> AsyncIterator[bytes]:
        # A client with a cursor from the start can connect again without a gap at any time.
        batches = self._hub.events(stream, self._after, PING_SECONDS, announced=True)
        async for deliveries in batches:
            if stream.is_closed:
                return
            if not deliveries:
                yield self._ping(stream.cursors)
            for delivery in deliveries:
                if delivery.resync:
                    yield self._resync(delivery)
                    if not self._numbered:
                        return
                yield delivery.content

    def _ping(self, cursors: Sequence[int]) -> bytes:
        """Returns what shows that the connection lives, and which cursors it has reached."""
        if self._numbered:
            return b"event: cursors\ndata: %s\n\n" % json.dumps(cursors).encode()
        # A block without data is no event, and sets the ID after which a browser connects again.
        return b"id: %d\n: ping\n\n" % cursors[0]

    def _resync(self, delivery: EventBatch) -> bytes:
        frame = encode_frame(None, "resync", _RELOAD)
        if not self._numbered:
            return frame
        return b"data: %s\n" % ",".join(map(str, delivery.resync)).encode() + frame


async def _until_gone(receive: Receive, stream: EventSubscription) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.close()


async def _write(send: Send, content: bytes, *, last: bool = False) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await send({"type": "http.response.body", "body": content, "more_body": not last})
