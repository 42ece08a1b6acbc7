"""Orders to stop: from the supervisor over a pipe, and as SIGTERM.

The engine reads the order from a plain attribute.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

from palestra.contract.states import Order
from workers.core.types import StopReason
from workers.trainer_process.stop_reasons import REASON_OF_ORDER

ABANDONED_EXIT: Final = 70
"""Exit status of a trainer whose supervisor ended or whose attempt is stale."""


class ControlFlag:
    """Holds the order to stop that the engine reads at each boundary."""

    def __init__(self) -> None:
        self.order: StopReason | None = None
        self.acknowledged = threading.Event()
        self._on_order: Callable[[StopReason], None] | None = None

    def acknowledge(self, reason: StopReason) -> None:
        """Records that the engine is about to save and stop."""
        del reason
        self.acknowledged.set()

    def give(self, reason: StopReason) -> None:
        """Sets the order to stop; cancel replaces any other order."""
        if self.order is None or reason is StopReason.CANCEL:
            self.order = reason
            if self._on_order is not None:
                self._on_order(reason)

    def call_at_order(self, on_order: Callable[[StopReason], None]) -> None:
        """Calls `on_order` for each order, on the thread that receives it.

        For jobs without an engine loop that reads the order.
        """
        self._on_order = on_order
        if self.order is not None:
            on_order(self.order)

    def listen(self, descriptor: int) -> None:
        """Starts the thread that reads one order per line.

        The end of the pipe ends the process at once.
        """
        threading.Thread(target=self._read, args=(descriptor,), name="control", daemon=True).start()

    def drain_at_sigterm(self) -> None:
        """Handles SIGTERM as the order `drain`."""
        signal.signal(signal.SIGTERM, lambda *_: self.give(StopReason.DRAIN))

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            for line in pipe:
                word = line.decode("ascii", "replace").strip()
                if word == Order.STALE:
                    break
                if word in REASON_OF_ORDER:
                    self.give(REASON_OF_ORDER[Order(word)])
        os._exit(ABANDONED_EXIT)
