"""The strongest order that an attempt received, from the server or by a signal."""

import threading
from typing import Final

from palestra.contract.states import Order

_STRENGTH: Final = {
    order: rank
    for rank, order in enumerate(
        (Order.CONTINUE, Order.DRAIN, Order.PAUSE, Order.CANCEL, Order.STALE)
    )
}


class PendingOrder:
    """Stores the strongest order that was given.

    Threads give orders; the supervisor's main thread waits for them.
    """

    def __init__(self) -> None:
        self._order = Order.CONTINUE
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self.stale = threading.Event()
        """Set once the attempt may not continue; ends every wait for the server."""

    @property
    def order(self) -> Order:
        """The strongest order so far."""
        return self._order

    def give(self, order: Order) -> None:
        """Stores an order if it is stronger than the current one.

        Must not be called in a signal handler, since it acquires a lock.
        """
        with self._lock:
            if _STRENGTH[order] <= _STRENGTH[self._order]:
                return
            self._order = order
            if order is Order.STALE:
                self.stale.set()
            self._changed.set()

    def wait(self, seconds: float) -> None:
        """Waits until the order changes, at most `seconds`."""
        if self._changed.wait(seconds):
            self._changed.clear()
