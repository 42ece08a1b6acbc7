"""Mappings of an order: from the server's order to the engine's stop reason and the outcome."""

import pytest

from palestra.contract.states import Cause, Order, Outcome
from workers.core.types import StopReason
from workers.ipc.order_ends import ORDER_ENDS
from workers.trainer_process.stop_reasons import ATTEMPT_ENDS, IMPOSED, REASON_OF_ORDER


def test_each_stop_reason_has_an_outcome() -> None:
    assert set(ATTEMPT_ENDS) == set(StopReason)


def test_each_order_that_ends_an_attempt_has_an_outcome() -> None:
    assert set(ORDER_ENDS) == set(Order) - {Order.CONTINUE}


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("pause", (Outcome.PAUSED, Cause.USER)),
        ("cancel", (Outcome.CANCELLED, Cause.USER)),
        ("drain", (Outcome.DRAINED, Cause.DRAIN)),
    ],
)
def test_each_order_on_the_control_pipe_has_its_outcome(
    word: str, end: tuple[Outcome, Cause]
) -> None:
    reason = REASON_OF_ORDER[Order(word)]
    assert reason in IMPOSED
    assert ATTEMPT_ENDS[reason] == end


def test_an_order_and_its_stop_reason_have_one_name() -> None:
    assert all(order.value == reason.value for order, reason in REASON_OF_ORDER.items())
