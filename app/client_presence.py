"""Ends what a request reads from the database when its client has left.

ASGI's `receive` says that a client has left, but only to a task that waits for it beside each
request. A task is not cancelled: SQLAlchemy's pool would lose a connection that is being opened,
and whoever waits for one would wait until its time is over. The statement ends instead, as it does
at its deadline.
"""

from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, Final

_EXTENSION: Final = "palestra.client_presence"
"""Name of the extension in ASGI's `scope`."""


class ClientPresence:
    """The client of a connection, and how to end what its present request reads."""

    __slots__ = ("_ends", "has_left")

    def __init__(self) -> None:
        self.has_left = False
        self._ends: list[Callable[[], object]] = []
        """Ends the statements of the transactions that read for the request."""

    def begin_read(self, end: Callable[[], object]) -> None:
        """Notes how to end the statements of a transaction that begins for the request."""
        self._ends.append(end)
        if self.has_left:
            end()

    def end_read(self, end: Callable[[], object]) -> None:
        """Notes that the transaction has ended."""
        self._ends.remove(end)

    def leave(self) -> None:
        """Notes that the client has left, and ends the statements."""
        self.has_left = True
        for end in tuple(self._ends):
            end()

    def offer(self, scope: MutableMapping[str, Any]) -> None:
        """Lets the application of a request know its client."""
        scope.setdefault("extensions", {})[_EXTENSION] = self


READER: Final[ContextVar[ClientPresence | None]] = ContextVar("palestra_reader", default=None)
"""The client for which the present task reads; `None` if the task goes on without one."""


def find_presence(scope: MutableMapping[str, Any]) -> ClientPresence | None:
    """Returns the client of a request, if its server tells of it."""
    client: ClientPresence | None = scope.get("extensions", {}).get(_EXTENSION)
    return client
