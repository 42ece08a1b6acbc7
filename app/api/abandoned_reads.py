"""Lets the database end a statement that reads for a client that has left."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.read_requests import is_read, is_streamed
from app.client_presence import READER, find_presence


class AbandonedReads:
    """ASGI middleware that names the client for which a request of the API reads.

    Requests that write have none: what they began is done or not done as a whole, whoever listens.
    Answers that are made while they are sent notice by themselves that nobody reads them. The
    answer of `/readyz` is shared by requests, of which the first one reads it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        # Set without a client, too: a connection may pass the context of one request to the next.
        present = READER.set(find_presence(scope) if _is_of_one_client(scope) else None)
        try:
            await self._app(scope, receive, send)
        finally:
            READER.reset(present)


def _is_of_one_client(scope: Scope) -> bool:
    if scope["type"] != "http" or not scope["path"].startswith("/api/"):
        return False
    return is_read(scope) and not is_streamed(scope["path"])
