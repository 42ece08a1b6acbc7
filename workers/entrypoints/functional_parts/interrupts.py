"""Ends a call of a training function at SIGTERM or at a time limit."""

import signal
from contextlib import AbstractContextManager
from types import FrameType

from workers.core.protocols import TimeSource
from workers.core.types import StopReason
from workers.entrypoints.signal_handlers import handle_signals


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM.

    Like KeyboardInterrupt it is not an `Exception`, so that `except Exception` does not catch it.
    """


class Interrupts:
    """The engine's control of one call.

    The first SIGTERM ends training after the current step, so that the snapshot is consistent; a
    second one raises TerminatedError at once.

    Args:
        time_limit: Longest duration of this call in seconds; `None` for no limit.
        time: Returns monotonic seconds.
    """

    def __init__(self, time_limit: float | None, time: TimeSource) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit must be more than 0 seconds or None, not {time_limit}")
        self._time = time
        self._deadline = None if time_limit is None else time() + time_limit
        self.terminated = False

    @property
    def order(self) -> StopReason | None:
        """Reason to stop now, or `None`."""
        if self.terminated:
            return StopReason.DRAIN
        if self._deadline is not None and self._time() >= self._deadline:
            return StopReason.TIME_LIMIT
        return None

    def acknowledge(self, reason: StopReason) -> None:
        """Does nothing: no process waits for an answer."""

    def check_interrupts(self) -> None:
        """Raises TerminatedError if SIGTERM was received.

        Called within an evaluation, which changes no training state and need not be finished.
        """
        if self.terminated:
            raise TerminatedError("SIGTERM")

    def handle_sigterm(self) -> AbstractContextManager[None]:
        """Returns a context that handles SIGTERM, if this is the main thread."""
        return handle_signals((signal.SIGTERM,), self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.terminated:
            raise TerminatedError("SIGTERM, for the second time")
        self.terminated = True
