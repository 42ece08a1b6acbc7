"""Hooks for divergence, waiting for other processes, final values and the end of evaluations."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from workers.core.errors import NumericalFailureError
from workers.core.types import StopReason
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook

_log = structlog.get_logger()

POLL_SECONDS: Final = 0.5


class NanTensorHook(SessionRunHook):
    """Checks after every run that the loss is finite.

    Reading the loss synchronises with the device.

    Args:
        fail_on_nan_loss: Whether `after_run` raises NumericalFailureError for a loss that is not
            finite; if false, the training ends as diverged.
    """

    def __init__(self, *, fail_on_nan_loss: bool = True) -> None:
        self._fail = fail_on_nan_loss

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Raises NumericalFailureError or requests a stop if the loss is not finite."""
        if run_values.loss is None or math.isfinite(float(run_values.loss)):
            return
        step = run_context.session.global_step
        if self._fail:
            raise NumericalFailureError(
                f"the loss is {float(run_values.loss)} at global_step {step}: "
                "lower the learning rate or clip gradients"
            )
        _log.error("estimator.diverged", global_step=step)
        run_context.request_stop(StopReason.DIVERGED)


class GlobalStepWaiterHook(SessionRunHook):
    """Delays the first run until the processes of a cluster have made enough updates together.

    Args:
        wait_until_step: Number of updates to wait for; 0 or less does not wait.
        global_step: Returns the shared number of updates; `None` reads the session's global step.
        sleep: Sleeps for the given number of seconds.
    """

    def __init__(
        self,
        wait_until_step: int,
        global_step: Callable[[], int] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.wait_until_step: Final = wait_until_step
        self._global_step = global_step
        self._sleep = sleep
        self._has_waited = False

    def before_run(self, run_context: RunContext) -> None:
        """Waits before the first run."""
        if self._has_waited:
            return
        read = self._global_step or (lambda: run_context.session.global_step)
        while read() < self.wait_until_step:
            self._sleep(POLL_SECONDS)
        self._has_waited = True


class FinalOpsHook(SessionRunHook):
    """Calls functions at the end and stores the results.

    Args:
        final_ops: Functions without parameters, by name.
    """

    def __init__(self, final_ops: Mapping[str, Callable[[], object]]) -> None:
        self._final_ops = dict(final_ops)
        self.final_ops_values: dict[str, object] = {}
        """Return values of the functions by name; empty before the end."""

    def end(self, session: RunSession) -> None:
        """Calls the functions."""
        del session
        self.final_ops_values = {name: op() for name, op in self._final_ops.items()}


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after a number of batches or episodes.

    Args:
        num_evals: Number of batches or episodes, at least 1; `None` for no bound.

    Raises:
        ValueError: If `num_evals` is less than 1.
    """

    def __init__(self, num_evals: int | None) -> None:
        if num_evals is not None and num_evals < 1:
            raise ValueError(f"num_evals must be at least 1, not {num_evals}")
        self._num_evals = num_evals
        self._made = 0

    def begin(self) -> None:
        """Resets the count to 0."""
        self._made = 0

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Counts a run, and requests a stop if the bound is reached."""
        del run_values
        self._made += 1
        if self._num_evals is not None and self._made >= self._num_evals:
            run_context.request_stop()
