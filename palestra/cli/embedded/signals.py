"""Signals that ask a command to stop: the first one unwinds it, so that every `finally` runs; a further one makes an end at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked this process to stop. Not an `Exception`: like `KeyboardInterrupt` it passes every `except Exception`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 0 if number == signal.SIGTERM else 128 + number


@dataclass(slots=True)
class StopSignals:
    """What was asked so far."""

    stopping: bool = False
    """Set by whoever begins to stop: from then on a signal does not unwind, it hurries."""


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[StopSignals]:
    """Makes the first SIGINT, SIGTERM or SIGHUP raise `Stopped` in the main thread, and every later one call `hurry`.

    Args:
        hurry: Must be safe at any moment; for example sends SIGKILL to children without waiting for them.
    """
    state = StopSignals()

    def handle(number: int, _frame: object) -> None:
        if state.stopping:
            hurry()
        else:
            state.stopping = True
            raise Stopped(number)

    before = {number: signal.signal(number, handle) for number in _NUMBERS}
    try:
        yield state
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
