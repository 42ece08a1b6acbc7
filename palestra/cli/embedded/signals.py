"""Signals that ask a command to stop.

The first one raises an exception, so that every `finally` runs; a further one ends at once.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REMIND_SECONDS: Final = 0.5


class Stopped(BaseException):
    """Raised when a signal requests that this process stops.

    Not an `Exception`: like `KeyboardInterrupt` it passes every `except Exception`.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 0 if number == signal.SIGTERM else 128 + number


@dataclass(slots=True)
class StopSignals:
    """The stop signals received so far."""

    stopping: bool = False
    """Set by the code that begins to stop; later signals then call `hurry` instead of raising."""
    asked: int | None = None
    """The first signal received."""
    reminding: bool = False
    """Whether the next signal is a repetition of the first by a timer."""


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[StopSignals]:
    """Makes the first SIGINT, SIGTERM or SIGHUP raise `Stopped` in the main thread.

    Every later one calls `hurry`.

    Python drops an exception that is raised while a finalizer or a weak reference's callback runs.
    So it is raised again, every half second, until `stopping` is set or the block is left.

    Args:
        hurry: Must be safe at any moment; for example sends SIGKILL to children without waiting for
            them.
    """
    state = StopSignals()
    asked, left = threading.Event(), threading.Event()

    def handle(number: int, _frame: object) -> None:
        if state.reminding and state.asked is not None:
            state.reminding = False
            if not state.stopping:
                raise Stopped(state.asked)
        elif state.stopping or state.asked is not None:
            hurry()
        else:
            state.asked = number
            asked.set()
            raise Stopped(number)

    # The thread is there from the start: to start one within a handler can wait for a lock that the
    # interrupted code holds.
    reminder = threading.Thread(target=_remind, args=(state, asked, left), daemon=True)
    reminder.start()
    before = {number: signal.signal(number, handle) for number in _NUMBERS}
    report, sys.unraisablehook = sys.unraisablehook, _quiet_about_stops(sys.unraisablehook)
    try:
        yield state
    finally:
        sys.unraisablehook = report
        state.stopping = True
        left.set()
        asked.set()
        reminder.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def _quiet_about_stops(report: Callable[[Any], object]) -> Callable[[Any], object]:
    """Returns a hook that reports all dropped exceptions but `Stopped`, which is raised again."""
    return lambda dropped: None if isinstance(dropped.exc_value, Stopped) else report(dropped)


def _remind(state: StopSignals, asked: threading.Event, left: threading.Event) -> None:
    asked.wait()
    while not left.wait(_REMIND_SECONDS) and not state.stopping:
        state.reminding = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
