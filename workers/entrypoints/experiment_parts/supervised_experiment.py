"""`Experiment`: an estimator, its inputs, and the schedules that train and evaluate it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from workers.core.types import JsonObject
from workers.entrypoints.experiment_parts.experiment_base import ModelLike, ScheduleOptions
from workers.entrypoints.experiment_parts.schedules import Schedules
from workers.supervised.batches import InputFn
from workers.supervised.run_session import SessionRunHook


@runtime_checkable
class EstimatorLike(ModelLike, Protocol):
    """Methods of an estimator, such as `workers.estimators.Estimator`, that an experiment uses."""

    def train(
        self, input_fn: Any, hooks: Any = None, steps: Any = None, max_steps: Any = None
    ) -> Any:
        """Trains and returns the estimator."""

    def evaluate(
        self,
        input_fn: Any,
        steps: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: Any = None,
    ) -> Any:
        """Returns a dictionary of results with `global_step`."""


class Experiment(Schedules):
    """An estimator, its inputs, and schedules. The constructor calls none of its arguments.

    Args:
        estimator: The estimator to train; see `EstimatorLike`.
        train_input_fn: Returns batches to train on; see `workers.supervised.batches`.
        eval_input_fn: Returns batches to evaluate on; they must be finite if `eval_steps` is
            `None`.
        train_steps: Total updates of the model, at which training ends; `None` for no bound.
        eval_steps: Batches of one evaluation; `None` for all batches of the input.
        train_hooks: Called around the updates; the list is copied.
        eval_hooks: Called around the batches of evaluations; the list is copied.
        eval_delay_secs: Seconds before the first evaluation.
        continuous_eval_throttle_secs: Least number of seconds between the starts of two
            evaluations.
        eval_every_n_steps: Least number of updates between two evaluations of
            `train_and_evaluate`; 0 or `None` evaluates only at the end.
        delay_workers_by_global_step: Whether the workers of a cluster wait for a value of the
            shared global step before they begin, in place of a number of seconds.
        export_strategies: One `ExportStrategy`, several or none.
        train_steps_per_iteration: Updates of a round of `continuous_train_and_evaluate`; `None` for
            a tenth of `train_steps`, or for 1,000 if `train_steps` is `None` too.

    Raises:
        ValueError: If `estimator` is not an estimator, or an option has the wrong type.
    """

    def __init__(  # noqa: PLR0917 - the documented signature
        self,
        estimator: EstimatorLike,
        train_input_fn: InputFn,
        eval_input_fn: InputFn,
        train_steps: int | None = None,
        eval_steps: int | None = 10,
        train_hooks: Iterable[SessionRunHook] | None = None,
        eval_hooks: Iterable[SessionRunHook] | None = None,
        eval_delay_secs: float = 0,
        continuous_eval_throttle_secs: float = 60,
        eval_every_n_steps: int | None = 1,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = 100,
    ) -> None:
        if not isinstance(estimator, EstimatorLike) or hasattr(estimator, "run_episode"):
            raise ValueError(
                f"estimator must be an Estimator, not {type(estimator).__name__}; "
                "pass an agent to RLExperiment instead"
            )
        options = ScheduleOptions(
            train_steps=train_steps,
            eval_steps=eval_steps,
            train_hooks=train_hooks,
            eval_hooks=eval_hooks,
            eval_delay_secs=eval_delay_secs,
            continuous_eval_throttle_secs=continuous_eval_throttle_secs,
            eval_every_n_steps=eval_every_n_steps,
            delay_workers_by_global_step=delay_workers_by_global_step,
            export_strategies=export_strategies,
            train_steps_per_iteration=train_steps_per_iteration,
        )
        super().__init__(estimator, options)
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn

    @property
    def estimator(self) -> Any:
        """The estimator that the schedules train and evaluate."""
        return self._model

    def _train(self, hooks: Sequence[SessionRunHook], **bound: int | None) -> object:
        return self._model.train(input_fn=self._train_input_fn, hooks=list(hooks), **bound)

    def _evaluate(
        self,
        name: str | None,
        hooks: Sequence[SessionRunHook],
        *,
        steps: int | None = None,
        checkpoint: Path | None = None,
        uses_train_data: bool = False,
    ) -> JsonObject:
        input_fn = self._train_input_fn if uses_train_data else self._eval_input_fn
        wanted = self.eval_steps if steps is None else steps
        result: JsonObject = self._model.evaluate(
            input_fn=input_fn,
            steps=wanted,
            hooks=list(hooks),
            checkpoint_path=checkpoint,
            name=name,
        )
        return result

    def _copy_with_directory(self, directory: str) -> "Experiment":
        model = self._copy_model_with_directory(directory)
        return Experiment(
            model,
            self._train_input_fn,
            self._eval_input_fn,
            export_strategies=self.export_strategies,
        )
