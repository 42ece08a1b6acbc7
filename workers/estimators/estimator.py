"""Supervised models, which the engine trains and whose checkpoints are evaluated and exported."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from workers.core.rng import derive_seed, preserve_global_state, seed_global
from workers.core.types import JsonObject
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.estimators.basic_hooks import StopAfterNEvalsHook
from workers.estimators.counter_hooks import (
    StepCheckpointSaverHook,
    StopAtStepHook,
)
from workers.estimators.evaluation_results import write_result
from workers.estimators.model_owner import ModelOwner, check_bounds, log
from workers.estimators.training_services import ModelBudget
from workers.supervised.batches import (
    BatchCollector,
    InputFn,
    as_batches,
    is_one_batch,
    rows_in,
    to_tensors,
)
from workers.supervised.learner import SessionHook, SupervisedLearner, evaluate_batch, mean_values
from workers.supervised.modes import Modes
from workers.supervised.run_session import RunSession, SessionRunHook, check_hooks
from workers.supervised.variables import Variables

SAVE_SECONDS = 600.0
"""Seconds between two checkpoints, if the configuration sets no interval."""


class Estimator(ModelOwner):
    """A supervised model.

    Its state is saved in the checkpoints of `model_dir`; another estimator with the same directory
    continues from the newest one.

    Args:
        model_fn: `model_fn(features, labels[, mode[, params[, config[, model_dir]]]])`, see
            `workers.supervised.variables`.
        model_dir: Directory of the checkpoints; `None` uses `config.model_dir` or, if that is
            `None` too, a new temporary directory.
        config: Configuration; `None` for the defaults.
        params: Hyperparameters of the model function.

    Raises:
        ValueError: If the model function does not accept the arguments it is called with, or
            `model_dir` and `config.model_dir` differ.
    """

    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
    ) -> "Estimator":
        """Trains until a bound is reached, the input ends or a hook requests a stop.

        Args:
            input_fn: Returns batches; see `workers.supervised.batches`.
            hooks: Called around each update.
            steps: Number of further updates, after which the training is saved as paused; two calls
                with 10 make 20 updates.
            max_steps: Total updates of the model; two calls with 10 make 10 updates.

        Returns:
            The estimator.

        Raises:
            ValueError: If a bound is less than 1, or both are set.
            TypeError: If a hook is not a `SessionRunHook`.
        """
        check_bounds(steps=steps, max_steps=max_steps)
        extra = check_hooks(hooks)
        if max_steps is not None and self.global_step >= max_steps:
            log.info("estimator.already_trained", global_step=self.global_step, max_steps=max_steps)
            return self
        all_hooks = [
            *self._default_hooks(extra),
            *extra,
            *([] if steps is None else [StopAtStepHook(num_steps=steps)]),
        ]
        with preserve_global_state():
            seed_global(self._config.seed)
            engine = self._build_engine(input_fn, all_hooks, ModelBudget(updates=max_steps))
            result = engine.run()
        log.info("estimator.trained", global_step=engine.clock.updates, reason=result.reason.value)
        return self

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | Path | None = None,
        name: str | None = None,
    ) -> JsonObject:
        """Evaluates a checkpoint, and appends the result to a series.

        Args:
            input_fn: Returns batches; see `workers.supervised.batches`.
            steps: Largest number of batches; `None` evaluates until the input ends.
            hooks: Called around each batch.
            checkpoint_path: Path of the checkpoint; `None` for the newest.
            name: Name of the series, which is written to `eval_<name>` in `model_dir`; `None`
                writes to `eval`.

        Returns:
            `loss` and the model's metrics, each a mean over examples, and `global_step`.

        Raises:
            ValueError: If `steps` is less than 1, or the input is empty.
            EstimatorNotTrainedError: If there is no checkpoint.
        """
        check_bounds(steps=steps)
        bound = StopAfterNEvalsHook(steps)
        loaded = self._load(checkpoint_path)
        given = input_fn()
        batches = [given] if steps is None and is_one_batch(given) else as_batches(given)
        variables = self._variables(loaded)
        session = RunSession(
            variables, [*check_hooks(hooks), bound], self.model_dir, self.services.time
        )
        with preserve_global_state():
            seed_global(
                derive_seed(self._config.seed, "evaluation", variables.global_step, bits=53)
            )
            result = {
                **self._mean_values(session, iter(batches)),
                "global_step": variables.global_step,
            }
        session.end()
        write_result(self.model_dir, name, result, writes_events=self._config.tensorboard)
        log.info("estimator.evaluated", series=name or "", **result)
        return result

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Sequence[str] | None = None,
        checkpoint_path: str | Path | None = None,
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Yields the predictions of each example.

        Args:
            input_fn: Returns batches, whose labels are ignored.
            predict_keys: Names of the predictions to yield; `None` for all.
            checkpoint_path: Path of the checkpoint; `None` for the newest.

        Raises:
            EstimatorNotTrainedError: If there is no checkpoint.
            TypeError: If `predict_keys` is a string.
            ValueError: If a name in `predict_keys` is not a prediction of the model.
        """
        variables = self._variables(self._load(checkpoint_path))
        given = input_fn()
        for features, _ in [given] if is_one_batch(given) else as_batches(given):
            spec = self._model(
                variables, to_tensors(features, variables.device), None, Modes.PREDICT
            )
            chosen = _select_predictions(spec.predictions, predict_keys)
            for row in range(rows_in(features)):
                yield {key: value[row] for key, value in chosen.items()}

    # Private

    def _build_engine(
        self, input_fn: InputFn, hooks: Sequence[SessionRunHook], bound: ModelBudget
    ) -> Engine:
        """Builds the engine and restores the newest checkpoint, if there is one."""
        variables = Variables(self._config.seed, self._config.device)
        session = RunSession(variables, hooks, self.model_dir, self.services.time)
        parts = Parts(
            agent=SupervisedLearner(self._model, variables, session),
            collector=BatchCollector(input_fn),
            recorder=self.services.recorder,
            snapshotter=self.saver(session),
            control=self.services.control,
            hooks=(SessionHook(session),),
        )
        engine = Engine(parts, Cadence(budget=bound), self.services.time)
        if (newest := self.newest_snapshot()) is not None:
            engine.restore(newest.state)
        return engine

    def _checkpoint_hook(self) -> SessionRunHook:
        steps = self._config.save_checkpoints_steps or None
        secs = None if steps else self._config.save_checkpoints_secs or SAVE_SECONDS
        return StepCheckpointSaverHook(secs, steps)

    def _mean_values(
        self, session: RunSession, batches: Iterator[tuple[object, object]]
    ) -> dict[str, float]:
        """Returns loss and metrics as means over examples.

        The evaluation ends with the input, or when a hook requests a stop.
        """
        session.start()

        def evaluate(batch: tuple[object, object]) -> Mapping[str, object]:
            return session.run(
                lambda: evaluate_batch(self._model, session.variables, batch)
            ).scalars

        return mean_values(_iterate_until_stop(session, batches), evaluate)[0]


def _select_predictions(
    predictions: Mapping[str, torch.Tensor], keys: Sequence[str] | None
) -> dict[str, torch.Tensor]:
    if keys is None:
        return dict(predictions)
    if isinstance(keys, str):
        raise TypeError(f"predict_keys must be a list of names, not the string {keys!r}")
    if unknown := [key for key in keys if key not in predictions]:
        there = ", ".join(predictions)
        raise ValueError(
            f"predict_keys: the model predicts nothing called {unknown[0]!r}; it predicts {there}"
        )
    return {key: value for key, value in predictions.items() if key in keys}


def _iterate_until_stop(
    session: RunSession, batches: Iterator[tuple[object, object]]
) -> Iterator[tuple[object, object]]:
    while not session.should_stop() and (batch := next(batches, None)) is not None:
        yield batch
