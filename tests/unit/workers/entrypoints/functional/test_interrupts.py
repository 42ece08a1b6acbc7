"""Signals and time limits that end a call of a training function."""

import os
import signal

import pytest

from workers.core.types import StopReason
from workers.entrypoints.functional_parts.interrupts import Interrupts, TerminatedError


def test_the_first_signal_requests_a_stop_and_the_second_raises() -> None:
    before = signal.getsignal(signal.SIGTERM)
    interrupts = Interrupts(None, lambda: 0.0)
    with interrupts.handle_sigterm():
        interrupts.check_interrupts()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.order is StopReason.DRAIN
        with pytest.raises(TerminatedError):
            interrupts.check_interrupts()
        with pytest.raises(KeyboardInterrupt, match="second time"):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_time_limit_requests_a_stop() -> None:
    now = [0.0]
    interrupts = Interrupts(5.0, lambda: now[0])
    assert interrupts.order is None
    now[0] = 5.0
    assert interrupts.order is StopReason.TIME_LIMIT
