"""Exponential back-off with jitter between retries."""

import random
import threading
from typing import Final

FIRST_SECONDS: Final = 0.25
MAX_SECONDS: Final = 15.0


class Backoff:
    """Counts consecutive failures and computes the wait after each.

    Args:
        stop: Setting this event ends every `wait`; `None` for callers that wait by other means.
        longest: Upper bound of a wait in seconds.
        first: Upper bound of the first wait in seconds; it doubles with each failure.
    """

    def __init__(
        self,
        stop: threading.Event | None = None,
        longest: float = MAX_SECONDS,
        first: float = FIRST_SECONDS,
    ) -> None:
        self._stop = stop or threading.Event()
        self._longest = longest
        self._first = first
        self.failures = 0

    def reset(self) -> None:
        """Resets the wait to the shortest one, after a success."""
        self.failures = 0

    def compute_next_wait(self, minimum: float = 0.0) -> float:
        """Counts a failure and returns the seconds to wait after it, at least `minimum`."""
        ceiling = min(self._first * 2.0 ** min(self.failures, 16), self._longest)
        self.failures += 1
        return max(minimum, ceiling * random.uniform(0.5, 1.0))  # noqa: S311 - spreads callers

    def wait(self, minimum: float = 0.0) -> bool:
        """Waits after a failure, at least `minimum` seconds; returns whether `stop` was set."""
        return self._stop.wait(self.compute_next_wait(minimum))
