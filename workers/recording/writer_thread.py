"""The thread in which recorders write their records."""

import threading
from collections.abc import Callable
from typing import Final

WRITE_SECONDS: Final = 0.25
"""Seconds between two writes, and so between the batches of a training.

The server's work for a batch hardly depends on its number of records: with ten batches a second it
would take twice as long, and a reader of the curves would see a point at most 0.15 s earlier.
"""


class WriterThread:
    """Calls the write functions of recorders four times a second.

    The recorders of a pack share one thread, because each thread that wakes up evicts the training
    loop's data from the CPU's caches and has to wait for the loop.

    The thread runs while at least one recorder's function is registered.

    Args:
        stop: The event for whose setting the thread waits between two writes.
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._each: tuple[Callable[[], None], ...] = ()
        self._stop = stop or threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, write: Callable[[], None]) -> None:
        """Registers `write`, which must not raise, and starts the thread if it is not running."""
        self._each = *self._each, write
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
            self._thread.start()

    def remove(self, write: Callable[[], None]) -> None:
        """Removes a registered function, and stops the thread after the last one.

        If other functions remain, a call of the removed function may still be running on return.
        """
        self._each = tuple(each for each in self._each if each != write)
        if not self._each and self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stop.wait(WRITE_SECONDS):
            for write in self._each:
                write()
