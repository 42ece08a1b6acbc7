"""How often a hook does what it does.

Needs no state: the next multiple follows from the counter, and seconds begin anew with a process.
"""

from collections.abc import Callable


class Repeated:
    """Says whether something is due, by a count or by seconds.

    Args:
        count: Due at each multiple of this count that is reached or passed; `None` for seconds.
        secs: Due after so many seconds since it was due; `None` for a count.

    Raises:
        ValueError: Unless exactly one is set, and is above 0.
    """

    def __init__(self, count: int | None = None, secs: float | None = None) -> None:
        if (count is None) == (secs is None):
            raise ValueError(
                "set exactly one of a number of steps or episodes and a number of seconds"
            )
        if (count if count is not None else secs or 0) <= 0:
            raise ValueError(
                f"a cadence must be above 0, is {count if count is not None else secs}"
            )
        self._count = count
        self._secs = secs
        self._next: float | None = None

    def start(self, value: int, now: Callable[[], float]) -> None:
        """Counts on from a value."""
        self._next = now() + self._secs if self._secs is not None else self._multiple_above(value)

    def due(self, value: int, now: Callable[[], float]) -> bool:
        """Returns whether it is due."""
        if self._next is None:
            self.start(max(0, value - 1), now)
        at = now() if self._secs is not None else value
        if self._next is None or at < self._next:
            return False
        self.start(value, now)
        return True

    def _multiple_above(self, value: int) -> int:
        count = self._count or 1
        return (value // count + 1) * count
