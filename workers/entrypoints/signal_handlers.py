"""Signals that end a training in an orderly way."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled_signals(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Handles signals during the body, then restores the handlers that were there before.

    Changes nothing outside the main thread, where Python handles no signals.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, signal.SIG_DFL if one is None else one)
