import os
import signal
from collections.abc import Callable

import pytest

from palestra.cli.embedded.signals import Stopped, stop_signals
from tests.support.waiting import wait_for


class _SignalInFinalizer:
    """An object whose finalizer receives a signal.

    Python ignores exceptions that a signal handler raises there.
    """

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass


def _run_until_stopped(on_later_signal: Callable[[], None], act: Callable[[], None]) -> Stopped:
    def block() -> None:
        with stop_signals(on_later_signal):
            act()
            wait_for(lambda: None, "the signal is raised")

    with pytest.raises(Stopped) as stopped:
        block()
    return stopped.value


def test_the_first_signal_raises_with_its_exit_code() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert (
        _run_until_stopped(lambda: None, lambda: os.kill(os.getpid(), signal.SIGTERM)).exit_code
        == 0
    )
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_whose_exception_was_ignored_raises_again() -> None:
    hurried: list[int] = []
    held = [_SignalInFinalizer()]
    assert _run_until_stopped(lambda: hurried.append(1), held.clear).args == (signal.SIGTERM,)
    assert hurried == [], "a reminder is no second signal"


def test_a_signal_during_the_shutdown_calls_the_hurry_callback() -> None:
    hurried: list[int] = []
    with stop_signals(lambda: hurried.append(1)) as signals:
        signals.is_stopping = True
        os.kill(os.getpid(), signal.SIGINT)
        wait_for(lambda: hurried, "the callback is called")
    assert hurried == [1]
