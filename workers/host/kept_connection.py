"""The connection to the server over which a process sends its claims."""

import os

import httpx

from palestra.telemetry.transport import open_client


class KeptConnection:
    """One HTTP client for each process and secret, kept between requests.

    The processes of the Celery pool are forked, and may share no connection: a client that an
    ancestor opened is left alone, and a new one is opened. A request may fail since the server
    closed the connection meanwhile; the caller repeats it.

    Args:
        server: Base URL of the server.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._client: httpx.Client | None = None
        self._opened_for = (0, "")

    def get(self, secret: str) -> httpx.Client:
        """Returns the client of this process that authenticates with a secret."""
        wanted = os.getpid(), secret
        if self._client is None or self._opened_for != wanted:
            if self._client is not None and self._opened_for[0] == wanted[0]:
                self._client.close()
            self._client = open_client(self._server, secret)
            self._opened_for = wanted
        return self._client
