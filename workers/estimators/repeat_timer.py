"""Timer for hooks that act at multiples of a counter, or at intervals of seconds.

The timer needs no saved state: the next multiple follows from the counter, and an interval of
seconds starts again with the process.
"""

from collections.abc import Callable


class RepeatTimer:
    """Reports when an action is due, by a count or by seconds.

    Args:
        count: Due at each multiple of this count that is reached or passed; `None` for seconds.
        secs: Due when this many seconds have passed since it was last due; `None` for a count.

    Raises:
        ValueError: Unless exactly one is set, and is above 0.
    """

    def __init__(self, count: int | None = None, secs: float | None = None) -> None:
        if (count is None) == (secs is None):
            raise ValueError(
                "set exactly one of a number of steps or episodes and a number of seconds"
            )
        interval = count if count is not None else secs or 0
        if interval <= 0:
            raise ValueError(f"an interval must be above 0, is {interval}")
        self._count = count
        self._secs = secs
        self._next: float | None = None

    def start(self, value: int, now: Callable[[], float]) -> None:
        """Sets the next due time or the next multiple above `value`."""
        count = self._count or 1
        self._next = (value // count + 1) * count if self._secs is None else now() + self._secs

    def restart_if_due(self, value: int, now: Callable[[], float]) -> bool:
        """Returns whether the action is due, and then starts the next interval."""
        if self._next is None:
            self.start(max(0, value - 1), now)
        at = now() if self._secs is not None else value
        if self._next is None or at < self._next:
            return False
        self.start(value, now)
        return True
