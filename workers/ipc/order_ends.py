"""The end of an attempt that obeyed an order of the server.

Supervisor and trainer report the same end.
"""

from collections.abc import Mapping
from typing import Final

from palestra.contract.states import Cause, Order, Outcome

ORDER_ENDS: Final[Mapping[Order, tuple[Outcome, Cause]]] = {
    Order.PAUSE: (Outcome.PAUSED, Cause.USER),
    Order.CANCEL: (Outcome.CANCELLED, Cause.USER),
    Order.DRAIN: (Outcome.DRAINED, Cause.DRAIN),
    Order.STALE: (Outcome.LOST, Cause.STALE),
}
"""Outcome and cause for each order except `continue`, which ends nothing."""
