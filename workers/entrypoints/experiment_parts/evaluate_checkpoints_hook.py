"""A hook that evaluates checkpoints during training."""

from collections.abc import Callable
from pathlib import Path

from workers.entrypoints.experiment_parts.continuous_evaluation import Result
from workers.estimators.checkpoints import CheckpointKey, key_of
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook


class EvaluateCheckpointsHook(SessionRunHook):
    """Evaluates checkpoints in the process that trains, between two updates.

    Args:
        every: Least number of updates between two evaluated checkpoints.
        evaluate: Evaluates the checkpoint at a path and returns the result.
    """

    def __init__(self, every: int, evaluate: Callable[[Path], Result]) -> None:
        self._every = every
        self._evaluate = evaluate
        self._last = 0
        self.evaluated: CheckpointKey | None = None
        """Key of the checkpoint that was evaluated last."""
        self.result: Result | None = None
        """Result of the last evaluation."""

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts updates from the session's current global step."""
        del coord
        self._last = session.global_step

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Evaluates the newest checkpoint, if it is due."""
        del run_values
        checkpoint = run_context.session.checkpoint
        if checkpoint is None:
            return
        key = key_of(checkpoint)
        if key.global_step - self._last >= self._every and key != self.evaluated:
            self.result, self.evaluated, self._last = (
                self._evaluate(checkpoint),
                key,
                key.global_step,
            )
