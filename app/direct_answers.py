"""Writes parts of a begun answer straight to its connection.

ASGI takes each part of an answer through a call of every layer of the application, in the task of
its request. To a thousand live streams, ten times a second, that is most of the server's work, and
the parts are the same bytes for many of them.
"""

from collections.abc import MutableMapping
from typing import Any, Final, Protocol

_EXTENSION: Final = "palestra.direct_answer"
"""Name of the extension in ASGI's `scope`."""


class DirectAnswer(Protocol):
    """The connection to which an answer is sent."""

    def write(self, chunk: bytes) -> bool:
        """Writes a chunk of the transfer coding (RFC 9112, section 7.1), without waiting.

        Parts that were sent through ASGI before precede it.

        Returns:
            Whether it was written; false if the client is behind with what was sent to it, if the
            connection closes, or if the answer is not sent in chunks.
        """


def offer_direct_answer(scope: MutableMapping[str, Any], answer: DirectAnswer) -> None:
    """Lets the application write to the connection of a request."""
    scope.setdefault("extensions", {})[_EXTENSION] = answer


def find_direct_answer(scope: MutableMapping[str, Any]) -> DirectAnswer | None:
    """Returns the connection of a request, if its server offers it and the answer has a body."""
    answer: DirectAnswer | None = scope.get("extensions", {}).get(_EXTENSION)
    return None if scope["method"] == "HEAD" else answer
