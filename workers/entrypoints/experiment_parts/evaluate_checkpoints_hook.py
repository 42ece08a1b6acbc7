"""Evaluation in the course of a training."""

from collections.abc import Callable
from pathlib import Path

from workers.entrypoints.experiment_parts.continuous_evaluation import Result
from workers.estimators.checkpoints import CheckpointKey, key_of
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook


class EvaluateCheckpointsHook(SessionRunHook):
    """Evaluates checkpoints while the training that writes them goes on.

    Args:
        every: Updates between two evaluated checkpoints at least.
        evaluate: Evaluates one.
    """

    def __init__(self, every: int, evaluate: Callable[[Path], Result]) -> None:
        self._every = every
        self._evaluate = evaluate
        self._last = 0
        self.evaluated: CheckpointKey | None = None
        """The last one that was evaluated."""
        self.result: Result | None = None
        """Its result."""

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        """Counts from where the training stands."""
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
