"""Evaluates each new checkpoint of a training in another process, until the training is over."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from workers.core.errors import SnapshotUnreadableError
from workers.entrypoints.experiment_parts.context import ExperimentContext
from workers.estimators.checkpoints import CheckpointKey, key_of

POLL_SECONDS: Final = 0.5
"""Least number of seconds between two checks for a new checkpoint."""
WARN_SECONDS: Final = 600.0
"""Seconds between two warnings that there is no new checkpoint."""

Result = Mapping[str, Any]
Predicate = Callable[[Result | None], bool]

_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class ContinuousEvaluation:
    """The loop of a continuous evaluation; see `Experiment.continuous_eval`."""

    model: Any
    """Estimator or agent, with `latest_checkpoint`, `has_training_ended` and `model_dir`."""
    series: str
    evaluate: Callable[[Path], Result]
    export: Callable[[Path, Result], object]
    is_finished: Callable[[Result], bool]
    """Returns whether a result belongs to a training that has reached its bound."""
    throttle: float
    """Least number of seconds between the starts of two evaluations."""
    evaluates_once: bool
    """Whether each checkpoint is evaluated only once."""
    context: ExperimentContext
    _evaluated: CheckpointKey | None = field(default=None, init=False)
    _warned_at: float = field(default=-math.inf, init=False)

    def run(self, predicate: Predicate | None) -> None:
        """Evaluates until the training is over or the predicate returns false.

        See `Experiment.continuous_eval`.
        """
        result: Result | None = None
        while predicate is None or predicate(result):
            if result and self.is_finished(result):
                _log.info(
                    "experiment.evaluation_finished",
                    series=self.series,
                    global_step=result.get("global_step"),
                )
                return
            began = self.context.now()
            result = self._evaluate_newest()
            if result is None:
                return
            pause = max(began + self.throttle - self.context.now(), 0.0 if result else POLL_SECONDS)
            if pause > 0:
                self.context.sleep(pause)

    def _evaluate_newest(self) -> Result | None:
        """Evaluates the newest checkpoint and returns the result.

        Returns `{}` if there is no new checkpoint, and `None` if the training is over and its last
        checkpoint has been evaluated.
        """
        # This is read before the checkpoint, so that a checkpoint written in between is evaluated
        # next time.
        has_ended = self.model.has_training_ended()
        checkpoint = self.model.latest_checkpoint()
        try:
            return self._judge(checkpoint, has_ended=has_ended)
        except (SnapshotUnreadableError, OSError):
            if (
                checkpoint == self.model.latest_checkpoint()
                and checkpoint is not None
                and checkpoint.exists()
            ):
                raise
            # The training has replaced the checkpoint; the next check finds a newer one.
            return {}

    def _judge(self, checkpoint: Path | None, *, has_ended: bool) -> Result | None:
        key = None if checkpoint is None else key_of(checkpoint)
        if has_ended and key is not None and key == self._evaluated:
            return None
        if checkpoint is None or (self.evaluates_once and key == self._evaluated):
            self._warn(is_missing=checkpoint is None)
            return {}
        result = self.evaluate(checkpoint)
        self._evaluated = key
        self.export(checkpoint, result)
        return result

    def _warn(self, *, is_missing: bool) -> None:
        now = self.context.now()
        if now - self._warned_at >= WARN_SECONDS:
            self._warned_at = now
            _log.warning(
                "experiment.no_new_checkpoint",
                series=self.series,
                missing=is_missing,
                model_dir=str(self.model.model_dir),
            )
