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
_REPEAT_SECONDS: Final = 0.5


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

    is_stopping: bool = False
    """Set by the code that begins to stop; later signals then call `on_later_signal`."""
    asked: int | None = None
    """The first signal received."""
    is_repeated: bool = False
    """Whether the next signal is a repetition of the first by a timer."""


@contextmanager
def stop_signals(on_later_signal: Callable[[], None]) -> Iterator[StopSignals]:
    """Makes the first SIGINT, SIGTERM or SIGHUP raise `Stopped` in the main thread.

    Every later one calls `on_later_signal`.

    Python drops an exception that is raised while a finalizer or a weak reference's callback runs.
    So it is raised again, every half second, until `is_stopping` is set or the block is left.

    Args:
        on_later_signal: Called in the signal handler, so it must be safe at any moment; for
            example it sends SIGKILL to children without waiting for them.
    """
    state = StopSignals()
    asked, left = threading.Event(), threading.Event()

    def handle(number: int, _frame: object) -> None:
        if state.is_repeated and state.asked is not None:
            state.is_repeated = False
            if not state.is_stopping:
                raise Stopped(state.asked)
        elif state.is_stopping or state.asked is not None:
            on_later_signal()
        else:
            state.asked = number
            asked.set()
            raise Stopped(number)

    # The thread is started here and not in the handler, where starting a thread could wait for a
    # lock that the interrupted code holds.
    repeater = threading.Thread(target=_repeat_first_signal, args=(state, asked, left), daemon=True)
    repeater.start()
    before = {number: signal.signal(number, handle) for number in _NUMBERS}
    report, sys.unraisablehook = sys.unraisablehook, _hide_dropped_stops(sys.unraisablehook)
    try:
        yield state
    finally:
        sys.unraisablehook = report
        state.is_stopping = True
        left.set()
        asked.set()
        repeater.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def _hide_dropped_stops(report: Callable[[Any], object]) -> Callable[[Any], object]:
    """Returns a hook that reports all dropped exceptions but `Stopped`, which is raised again."""
    return lambda dropped: None if isinstance(dropped.exc_value, Stopped) else report(dropped)


def _repeat_first_signal(state: StopSignals, asked: threading.Event, left: threading.Event) -> None:
    asked.wait()
    while not left.wait(_REPEAT_SECONDS) and not state.is_stopping:
        state.is_repeated = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
