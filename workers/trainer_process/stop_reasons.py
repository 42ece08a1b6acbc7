"""Maps orders to the engine's stop reasons, and those to the outcomes of a report.

For example, a pause is `Order.PAUSE` from the server, the word `pause` on the control pipe,
`StopReason.PAUSE` in the engine, and `Outcome.PAUSED` in the report. The outcome of an order is
stated once, in `workers.ipc.order_ends`.
"""

from collections.abc import Mapping
from typing import Final

from palestra.contract.states import Cause, Order, Outcome
from workers.core.types import StopReason
from workers.ipc.order_ends import ORDER_ENDS

REASON_OF_ORDER: Final[Mapping[Order, StopReason]] = {
    Order.PAUSE: StopReason.PAUSE,
    Order.CANCEL: StopReason.CANCEL,
    Order.DRAIN: StopReason.DRAIN,
}
"""The engine's stop reason by order.

`stale` ends the process without a report, `continue` stops nothing.
"""

IMPOSED: Final = frozenset(REASON_OF_ORDER.values())
"""Stop reasons that come from outside the training."""

ATTEMPT_ENDS: Final[Mapping[StopReason, tuple[Outcome, Cause]]] = {
    StopReason.BUDGET: (Outcome.SUCCEEDED, Cause.BUDGET),
    StopReason.REQUESTED: (Outcome.SUCCEEDED, Cause.USER),
    StopReason.SUCCESS_SCORE: (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),
    StopReason.INPUT_EXHAUSTED: (Outcome.SUCCEEDED, Cause.BUDGET),
    StopReason.DIVERGED: (Outcome.FAILED, Cause.DIVERGED),
    StopReason.TIME_LIMIT: (Outcome.FAILED, Cause.TIME_LIMIT),
    **{reason: ORDER_ENDS[order] for order, reason in REASON_OF_ORDER.items()},
}
"""Outcome and cause of the attempt by stop reason."""
