"""A streamed answer that releases what it reads from, however sending ends."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ClosingResponse(StreamingResponse):
    """Sends pieces, and calls `close` at the end, also where the connection breaks.

    Args:
        pieces: The content.
        headers: Headers of the answer.
        close: Releases what the pieces are read from.
        status_code: Status of the answer.
        media_type: Media type, unless `headers` have it.
    """

    def __init__(
        self,
        pieces: AsyncIterable[bytes],
        headers: Mapping[str, str],
        close: Callable[[], Awaitable[None]],
        *,
        status_code: int = 200,
        media_type: str | None = None,
    ) -> None:
        super().__init__(pieces, status_code, headers, media_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()
