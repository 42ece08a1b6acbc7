"""Lets the database end a statement that reads for a client that has left."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.read_requests import is_read, is_streamed
from app.client_presence import READER, find_presence


class AbandonedReads:
    """ASGI middleware that names the client for which a request reads.

    Requests that write have none: what they began is done or not done as a whole, whoever listens.
    Answers that are made while they are sent notice by themselves that nobody reads them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        client = find_presence(scope)
        if client is None or not is_read(scope) or is_streamed(scope["path"]):
            await self._app(scope, receive, send)
            return
        present = READER.set(client)
        try:
            await self._app(scope, receive, send)
        finally:
            READER.reset(present)
