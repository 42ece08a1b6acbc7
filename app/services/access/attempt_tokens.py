"""Remembers for a short time which attempts tokens belong to, in the memory of the process."""

import time
from typing import ClassVar, Final

from app.domain.secrets import hash_secret


class AttemptTokens:
    """The tokens of attempts that were looked up lately, by their hashes.

    An attempt keeps its token for its whole life and after it. What it may still do is for the
    reader to check: only a route that does so in its transaction may use this.
    """

    SECONDS: ClassVar[float] = 60.0
    """Time for which a token is remembered."""
    MAX_TOKENS: ClassVar[int] = 10_000
    """Tokens that are remembered at most."""

    def __init__(self) -> None:
        self._found: Final[dict[str, tuple[str, float]]] = {}

    def find(self, secret: str) -> str | None:
        """Returns the attempt of a token that was added lately."""
        found = self._found.get(hash_secret(secret))
        return None if found is None or found[1] < time.monotonic() else found[0]

    def add(self, secret: str, attempt_id: str) -> None:
        """Remembers a token that was looked up in the database."""
        digest = hash_secret(secret)
        self._found.pop(digest, None)
        self._found[digest] = attempt_id, time.monotonic() + self.SECONDS
        if len(self._found) > self.MAX_TOKENS:
            del self._found[next(iter(self._found))]
