"""The schedules of an experiment, for estimators and agents.

A schedule that was interrupted can be started again: the progress of a model is read from its
directory.
"""

import math
import signal
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from workers.core.types import JsonObject
from workers.entrypoints.experiment_parts.continuous_evaluation import (
    ContinuousEvaluation,
    Predicate,
    Result,
)
from workers.entrypoints.experiment_parts.evaluate_checkpoints_hook import EvaluateCheckpointsHook
from workers.entrypoints.experiment_parts.experiment_base import ExperimentBase
from workers.entrypoints.signal_handlers import handle_signals
from workers.estimators.basic_hooks import GlobalStepWaiterHook
from workers.estimators.checkpoints import key_of
from workers.estimators.cluster import SharedStepHook
from workers.estimators.evaluation_results import read_results
from workers.supervised.run_session import SessionRunHook

MAX_DELAY_SECONDS: Final = 60.0
DELAY_PER_TASK_SECONDS: Final = 5.0
DELAY_STEPS: Final = 8000
DEFAULT_ROUND: Final = 1000
ONE_PASS: Final = "one_pass"  # noqa: S105 - a series, no password
CONTINUOUS: Final = "continuous"
CONTINUOUS_ON_TRAIN_DATA: Final = "continuous_on_train_data"


class Schedules(ExperimentBase):
    """Base class of `Experiment` and `RLExperiment` with all schedules."""

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains until the model has made `train_steps` updates in total.

        Args:
            delay_secs: Seconds from the call to the beginning of training, the start of a server
                included. `None` staggers the workers of a cluster: each waits
                `min(60, 5 * task_id)` seconds or, with `delay_workers_by_global_step`, until all
                workers together have made int(8000 * ln(task_id + 1)) updates.

        Returns:
            The trained estimator or agent.
        """
        return self._train_after_delay(delay_secs, ())

    def evaluate(self, delay_secs: float | None = None) -> JsonObject:
        """Evaluates the newest checkpoint in the series `one_pass`.

        Args:
            delay_secs: Seconds to wait first; `None` uses `eval_delay_secs`.

        Returns:
            The result of the evaluation.

        Raises:
            EstimatorNotTrainedError: If there is no checkpoint.
        """
        self._sleep(self._options.eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(ONE_PASS, self._eval_hooks)

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Predicate | None = None,
    ) -> None:
        """Evaluates and exports each new checkpoint, until the training is over.

        Args:
            delay_secs: Seconds to wait first; `None` uses `eval_delay_secs`.
            throttle_delay_secs: Least number of seconds between the starts of two evaluations;
                `None` uses `continuous_eval_throttle_secs`.
            evaluate_checkpoint_only_once: If false, the newest checkpoint is evaluated again while
                there is no newer one.
            continuous_eval_predicate_fn: Called before each check for a checkpoint with the last
                result: `None` the first time, `{}` after a check without an evaluation. If it
                returns false, the loop ends.

        Raises:
            ValueError: If the predicate is not callable.
        """
        self._evaluate_continuously(
            CONTINUOUS,
            delay_secs,
            throttle_delay_secs,
            continuous_eval_predicate_fn,
            evaluates_once=evaluate_checkpoint_only_once,
        )

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Predicate | None = None,
    ) -> None:
        """Evaluates each new checkpoint once, on the data of the training.

        This data is the training's input function, or the training environment with the seeds of
        the training; see `continuous_eval`.
        """
        self._evaluate_continuously(
            CONTINUOUS_ON_TRAIN_DATA,
            delay_secs,
            throttle_delay_secs,
            continuous_eval_predicate_fn,
            evaluates_once=True,
        )

    def train_and_evaluate(self) -> tuple[Result | None, list[Any]]:
        """Trains, evaluates checkpoints during and after the training, and exports at the end.

        A checkpoint is evaluated if it is at least `eval_every_n_steps` updates newer than the one
        that was evaluated before; no additional checkpoints are written. With 0 or `None` only the
        last checkpoint is evaluated.

        Returns:
            The last result, and the return values of the export strategies.
        """
        hook = EvaluateCheckpointsHook(
            self._options.eval_every_n_steps or 0, self._evaluate_checkpoint
        )
        self._train_after_delay(0, (hook,) if self._options.eval_every_n_steps else ())
        newest = self._model.latest_checkpoint()
        done = newest is not None and hook.result is not None and hook.evaluated == key_of(newest)
        result = hook.result if done else self._evaluate(None, self._eval_hooks)
        return result, self._export(newest, result)

    def continuous_train_and_evaluate(
        self, continuous_eval_predicate_fn: Predicate | None = None
    ) -> tuple[Result | None, list[Any]]:
        """Alternates between training and evaluation, and exports at the end.

        A round ends at the next multiple of `train_steps_per_iteration`, the last one at
        `train_steps`; each ends with a checkpoint and frees the memory of the training. When this
        schedule is started again, it first evaluates a round that ended without an evaluation.

        Args:
            continuous_eval_predicate_fn: Called before each round with the last result, `None` the
                first time. If it returns false, the loop ends.

        Returns:
            The last result, and the return values of the export strategies.

        Raises:
            ValueError: If the predicate is not callable.
        """
        predicate = _check_predicate(continuous_eval_predicate_fn)
        result: Result | None = None
        while predicate is None or predicate(result):
            step = self._global_step(result)
            pending = self._is_unevaluated(step)
            if not pending and self._has_finished(step, result):
                result = self._last_result(step) if result is None else result
                break
            if not pending:
                self._train(self._train_hooks, steps=self._round(step))
            result = self._evaluate(ONE_PASS, self._eval_hooks)
            if not pending and self._global_step(result) == step:
                # The round made no update: the input is empty, or a hook requested a stop.
                break
        return result, self._export(self._model.latest_checkpoint(), result)

    continuous_train_and_eval = continuous_train_and_evaluate

    def run_std_server(self) -> None:
        """Runs the server of the configured cluster until SIGTERM or SIGINT.

        The server holds the shared global step.

        Raises:
            ValueError: If cluster, task type, task id or master is missing in the configuration.
        """
        config = self.config
        config.require_cluster()
        server = self.context.make_server(config)
        with handle_signals((signal.SIGTERM, signal.SIGINT), lambda *_: server.stop()):
            server.start()
            server.join()

    def test(self) -> Result:
        """Trains and evaluates for one step and exports, in a temporary directory.

        Returns:
            The result of the evaluation.
        """
        with tempfile.TemporaryDirectory(prefix="palestra-test-") as directory:
            moved = self._copy_with_directory(directory)
            moved._train([], steps=1)  # noqa: SLF001 - the same class
            result = moved._evaluate(ONE_PASS, [], steps=1)  # noqa: SLF001
            moved._export(moved._model.latest_checkpoint(), result)  # noqa: SLF001
        return result

    def _train_after_delay(
        self, delay_secs: float | None, extra: Sequence[SessionRunHook]
    ) -> object:
        config, began = self.config, self.context.now()
        hooks = [*self._train_hooks, *extra]
        with ExitStack() as stack:
            counter = self.context.join(config, stack)
            if counter is not None:
                hooks.append(SharedStepHook(counter.add))
            if delay_secs is None and self._options.delay_workers_by_global_step:
                step = int(DELAY_STEPS * math.log((config.task_id or 0) + 1))
                if counter is None and step:
                    raise ValueError(
                        "delay_workers_by_global_step needs cluster and master in the "
                        "RunConfig: there is no shared step"
                    )
                hooks.append(
                    GlobalStepWaiterHook(
                        step, None if counter is None else counter.read, self.context.sleep
                    )
                )
                delay_secs = 0
            elif delay_secs is None:
                delay_secs = min(MAX_DELAY_SECONDS, DELAY_PER_TASK_SECONDS * (config.task_id or 0))
            self._sleep(began + delay_secs - self.context.now())
            return self._train(hooks, max_steps=self.train_steps)

    def _evaluate_checkpoint(self, checkpoint: Path) -> JsonObject:
        return self._evaluate(None, self._eval_hooks, checkpoint=checkpoint)

    def _evaluate_continuously(
        self,
        name: str,
        delay: float | None,
        throttle: float | None,
        predicate: Predicate | None,
        *,
        evaluates_once: bool,
    ) -> None:
        """Evaluates in a loop; see `continuous_eval`."""
        uses_train_data = name == CONTINUOUS_ON_TRAIN_DATA

        def evaluate(checkpoint: Path) -> Result:
            return self._evaluate(
                name, self._eval_hooks, checkpoint=checkpoint, uses_train_data=uses_train_data
            )

        self._sleep(self._options.eval_delay_secs if delay is None else delay)
        ContinuousEvaluation(
            model=self._model,
            series=name,
            evaluate=evaluate,
            export=self._export,
            is_finished=lambda result: self._has_finished(
                int(result.get("global_step", 0)), result
            ),
            throttle=self._options.continuous_eval_throttle_secs if throttle is None else throttle,
            evaluates_once=evaluates_once,
            context=self.context,
        ).run(_check_predicate(predicate))

    def _round(self, step: int) -> int:
        """Returns the number of updates of the next round, which begins at `step`."""
        size, bound = self._round_size, self.train_steps
        return min(size - step % size, bound - step if bound is not None else size)

    @property
    def _round_size(self) -> int:
        """Updates of a full round."""
        size, bound = self._options.train_steps_per_iteration, self.train_steps
        if size is not None:
            return size
        return DEFAULT_ROUND if bound is None else max(1, bound // 10)

    def _global_step(self, result: Result | None) -> int:
        """Returns the global step of the newest checkpoint; without one, that of `result`."""
        newest = self._model.latest_checkpoint()
        return (
            key_of(newest).global_step
            if newest is not None
            else int((result or {}).get("global_step", 0))
        )

    def _last_result(self, step: int) -> Result | None:
        """Returns the newest recorded result of a global step; `None` if there is none."""
        return next(
            (
                row
                for row in reversed(read_results(self._model.model_dir, ONE_PASS))
                if row.get("global_step") == step
            ),
            None,
        )

    def _is_unevaluated(self, step: int) -> bool:
        """Returns whether a round ended at `step` and was not evaluated."""
        if not step or self._model.latest_checkpoint() is None:
            return False
        is_round_end = step == self.train_steps or step % self._round_size == 0
        return is_round_end and self._last_result(step) is None


def _check_predicate(predicate: Predicate | None) -> Predicate | None:
    if predicate is not None and not callable(predicate):
        raise ValueError(
            f"continuous_eval_predicate_fn must be callable or None, not {predicate!r}"
        )
    return predicate
