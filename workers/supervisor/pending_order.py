"""The strongest order that an attempt was given, from whatever side it came."""

import threading
from typing import Final

from palestra.contract.states import Order

_STRENGTH: Final = {
    order: rank
    for rank, order in enumerate(
        (Order.CONTINUE, Order.DRAIN, Order.PAUSE, Order.CANCEL, Order.STALE)
    )
}


class OrderBox:
    """Keeps the strongest order.

    Threads give orders; the supervisor's main thread waits for them.
    """

    def __init__(self) -> None:
        self._order = Order.CONTINUE
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self.stale = threading.Event()
        """Set once the attempt may not go on at all; ends every wait for the server."""

    @property
    def order(self) -> Order:
        """The strongest order so far."""
        return self._order

    def give(self, order: Order) -> None:
        """Takes an order.

        Weaker ones than the one already given change nothing. Not for signal handlers: it takes a
        lock.
        """
        with self._lock:
            if _STRENGTH[order] <= _STRENGTH[self._order]:
                return
            self._order = order
            if order is Order.STALE:
                self.stale.set()
            self._changed.set()

    def wait(self, seconds: float) -> None:
        """Waits for a change, at most `seconds`."""
        if self._changed.wait(seconds):
            self._changed.clear()
