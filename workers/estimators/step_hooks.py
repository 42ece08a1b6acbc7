"""Hooks whose cadence is the update (global_step). Only runs that learnt count."""

from typing import Final

import structlog

from workers.core.types import StopReason
from workers.estimators.repeat_timer import Repeated
from workers.estimators.summaries import SummaryWriter, summary_values
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook

_log = structlog.get_logger()

EVERY_STEPS: Final = 100


class StepLoggingTensorHook(SessionRunHook):
    """Logs the loss and the counters.

    Args:
        every_n_iter: Updates between two lines.
        every_n_secs: Seconds between two lines, in place of updates.
    """

    def __init__(self, every_n_iter: int | None = None, every_n_secs: float | None = None) -> None:
        count = EVERY_STEPS if every_n_iter is None and every_n_secs is None else every_n_iter
        self._repeated = Repeated(count, every_n_secs)

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        self._repeated.start(session.global_step, session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Logs."""
        session = run_context.session
        if run_values.learned and self._repeated.due(session.global_step, session.now):
            _log.info("estimator.step", **summary_values(session, run_values))


class StopAtStepHook(SessionRunHook):
    """Ends the training at an update.

    Args:
        num_steps: After so many updates from where it stands.
        last_step: At this update in the life of the model.

    Raises:
        ValueError: Unless exactly one is set.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("StopAtStepHook: set exactly one of num_steps and last_step")
        self._num_steps = num_steps
        self._last_step = last_step

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        if self._num_steps is not None:
            self._last_step = session.global_step + self._num_steps
        self._stop_if_reached(session)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Asks to stop."""
        del run_values
        self._stop_if_reached(run_context.session)

    def _stop_if_reached(self, session: RunSession) -> None:
        if self._last_step is not None and session.global_step >= self._last_step:
            session.request_stop(
                StopReason.PAUSE if self._num_steps is not None else StopReason.REQUESTED
            )


class StepCheckpointSaverHook(SessionRunHook):
    """Asks for checkpoints.

    Args:
        save_secs: Seconds between two checkpoints.
        save_steps: Updates between two checkpoints.

    Raises:
        ValueError: Unless exactly one is set.
    """

    def __init__(self, save_secs: float | None = None, save_steps: int | None = None) -> None:
        self._repeated = Repeated(save_steps, save_secs)

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        self._repeated.start(session.global_step, session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Asks for a checkpoint where one is due."""
        session = run_context.session
        if run_values.learned and self._repeated.due(session.global_step, session.now):
            session.request_checkpoint()


class StepCounterHook(SessionRunHook):
    """Measures updates per second.

    Args:
        every_n_steps: Updates between two measurements.
        every_n_secs: Seconds between two measurements, in place of updates.
        writer: Where they are written as `global_step/sec`; `None` for the session's directory.
    """

    def __init__(
        self,
        every_n_steps: int | None = None,
        every_n_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        count = EVERY_STEPS if every_n_steps is None and every_n_secs is None else every_n_steps
        self._repeated = Repeated(count, every_n_secs)
        self._writer = writer
        self._since = (0, 0.0)
        self.steps_per_sec: float | None = None
        """The last measurement."""

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Measures from where the training stands."""
        del coord
        self._writer = self._writer or SummaryWriter(session.model_dir)
        self._since = (session.global_step, session.now())
        self._repeated.start(session.global_step, session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Measures."""
        session = run_context.session
        if not (run_values.learned and self._repeated.due(session.global_step, session.now)):
            return
        (steps, since), now = self._since, session.now()
        self._since = (session.global_step, now)
        if now > since and self._writer is not None:
            self.steps_per_sec = (session.global_step - steps) / (now - since)
            self._writer.write(session, {"global_step/sec": self.steps_per_sec})


class StepSummarySaverHook(SessionRunHook):
    """Writes loss, learning rate, exploration rate and metrics.

    Args:
        save_steps: Updates between two rows.
        save_secs: Seconds between two rows, in place of updates.
        writer: Where they are written; `None` for the session's directory.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        writer: SummaryWriter | None = None,
    ) -> None:
        count = EVERY_STEPS if save_steps is None and save_secs is None else save_steps
        self._repeated = Repeated(count, save_secs)
        self._writer = writer

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
        del coord
        self._writer = self._writer or SummaryWriter(session.model_dir)
        self._repeated.start(session.global_step, session.now)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Writes a row."""
        session = run_context.session
        if (
            self._writer is not None
            and run_values.learned
            and self._repeated.due(session.global_step, session.now)
        ):
            self._writer.write(session, summary_values(session, run_values))

    def end(self, session: RunSession) -> None:
        """Closes event files."""
        del session
        if self._writer is not None:
            self._writer.close()
