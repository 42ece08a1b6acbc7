"""Waiting between tries: longer each time, spread, and at once over when stopped."""

import random
import threading
from typing import Final

FIRST_SECONDS: Final = 0.25
LONGEST_SECONDS: Final = 15.0


class Backoff:
    """Counts failures in a row and waits after each.

    Args:
        stop: Ends every wait.
        longest: Upper bound of a wait in seconds.
    """

    def __init__(self, stop: threading.Event, longest: float = LONGEST_SECONDS) -> None:
        self._stop = stop
        self._longest = longest
        self.failures = 0

    def reset(self) -> None:
        """Tells that a try went well."""
        self.failures = 0

    def wait(self, asked: float = 0.0) -> bool:
        """Waits after a failure, at least `asked` seconds; true if stopped."""
        ceiling = min(FIRST_SECONDS * 2 ** min(self.failures, 16), self._longest)
        self.failures += 1
        return self._stop.wait(max(asked, ceiling * random.uniform(0.5, 1.0)))  # noqa: S311 - spreads callers, keeps no secret
