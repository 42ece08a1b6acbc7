"""Writes parts of a begun answer straight to its connection.

ASGI takes each part of an answer through a call of every layer of the application, in the task of
its request. To a thousand live streams, ten times a second, that is most of the server's work, and
the parts are the same bytes for many of them.
"""

from collections.abc import MutableMapping
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_EXTENSION: Final = "palestra.direct_answer"
"""Name of the extension in ASGI's `scope`."""


class DirectAnswer:
    """The connection to which an answer is sent.

    Args:
        cycle: The request and its answer as uvicorn has them.
    """

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def write(self, chunk: bytes) -> bool:
        """Writes a chunk of the transfer coding (RFC 9112, section 7.1), without waiting.

        Parts that were sent through ASGI before precede it.

        Returns:
            Whether it was written; false if the client is behind with what was sent to it, if the
            connection closes, or if the answer is not sent in chunks.
        """
        cycle = self._cycle
        if (
            cycle.flow.write_paused
            or cycle.transport.is_closing()
            or cycle.response_complete
            or not (cycle.response_started and cycle.chunked_encoding)
        ):
            return False
        cycle.transport.write(chunk)
        return True


def offer_direct_answer(cycle: RequestResponseCycle) -> None:
    """Lets the application write to the connection of a request."""
    scope = cast("dict[str, Any]", cycle.scope)
    scope["extensions"] = {_EXTENSION: cycle}


def find_direct_answer(scope: MutableMapping[str, Any]) -> DirectAnswer | None:
    """Returns the connection of a request, if its server offers it and the answer has a body."""
    cycle = scope.get("extensions", {}).get(_EXTENSION)
    return None if cycle is None or scope["method"] == "HEAD" else DirectAnswer(cycle)
