"""Base class of experiments: model, options, hooks and export strategies."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from workers.core.counts import is_count
from workers.core.types import JsonObject
from workers.entrypoints.experiment_parts.context import ExperimentContext
from workers.entrypoints.experiment_parts.continuous_evaluation import Result
from workers.estimators.export_strategies import ExportStrategy, check_strategies
from workers.estimators.run_config import RunConfig
from workers.supervised.run_session import SessionRunHook


@runtime_checkable
class ModelLike(Protocol):
    """Attributes of an estimator or an agent that the schedules use."""

    @property
    def model_dir(self) -> str:
        """The directory of checkpoints."""

    def latest_checkpoint(self) -> Path | None:
        """Returns the path of the newest checkpoint; `None` if there is none."""

    def has_training_ended(self) -> bool:
        """Returns whether the training of `model_dir` is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """Options of both kinds of experiments; see `Experiment`."""

    train_steps: int | None
    eval_steps: int | None
    train_hooks: Iterable[SessionRunHook] | None
    eval_hooks: Iterable[SessionRunHook] | None
    eval_delay_secs: float
    continuous_eval_throttle_secs: float
    eval_every_n_steps: int | None
    delay_workers_by_global_step: bool
    export_strategies: object
    train_steps_per_iteration: int | None


class ExperimentBase(ABC):
    """Model, options, hooks and export strategies of an experiment.

    The constructor calls none of the functions and hooks that are passed to it.

    Args:
        model: Estimator or agent.
        options: Options of the schedules.

    Raises:
        ValueError: If an option has the wrong type.
    """

    def __init__(self, model: Any, options: ScheduleOptions) -> None:
        size = options.train_steps_per_iteration
        if size is not None and not is_count(size, 1):
            raise ValueError(
                f"train_steps_per_iteration must be an integer above 0 or None, not {size!r}"
            )
        self.context = ExperimentContext()
        """Clock, sleep and cluster."""
        self._model = model
        self._options = options
        self._train_hooks = list(options.train_hooks or ())
        self._eval_hooks = list(options.eval_hooks or ())
        self._strategies = check_strategies(options.export_strategies)

    @property
    def train_steps(self) -> int | None:
        """Total updates of the model, those of earlier processes included; `None` for no bound."""
        return self._options.train_steps

    @property
    def eval_steps(self) -> int | None:
        """Batches or episodes of one evaluation."""
        return self._options.eval_steps

    @property
    def options(self) -> ScheduleOptions:
        """Options of the schedules, as passed to the constructor."""
        return self._options

    @property
    def config(self) -> RunConfig:
        """The model's `RunConfig`; the default, of a single process, if the model has none."""
        config = getattr(self._model, "config", None)
        return config if isinstance(config, RunConfig) else RunConfig()

    @property
    def export_strategies(self) -> tuple[ExportStrategy, ...]:
        """The current export strategies."""
        return self._strategies

    def reset_export_strategies(
        self, new_export_strategies: object = None
    ) -> tuple[ExportStrategy, ...]:
        """Replaces the export strategies and returns the old ones.

        Args:
            new_export_strategies: One `ExportStrategy`, several or none.

        Raises:
            ValueError: If one of them is not an `ExportStrategy`; the old ones are kept then.
        """
        old, self._strategies = self._strategies, check_strategies(new_export_strategies)
        return old

    def extend_train_hooks(self, additional_hooks: Iterable[SessionRunHook]) -> None:
        """Appends hooks that are called in training."""
        self._train_hooks.extend(additional_hooks)

    def extend_eval_hooks(self, additional_hooks: Iterable[SessionRunHook]) -> None:
        """Appends hooks that are called in evaluations."""
        self._eval_hooks.extend(additional_hooks)

    @abstractmethod
    def _train(self, hooks: Sequence[SessionRunHook], **bound: int | None) -> object:
        """Trains the model.

        Args:
            hooks: Called around the updates.
            **bound: `steps`, the number of further updates, or `max_steps`, the total updates of
                the model; `None` for no bound.
        """

    @abstractmethod
    def _evaluate(
        self,
        name: str | None,
        hooks: Sequence[SessionRunHook],
        *,
        steps: int | None = None,
        checkpoint: Path | None = None,
        uses_train_data: bool = False,
    ) -> JsonObject: ...

    @abstractmethod
    def _copy_with_directory(self, directory: str) -> Self:
        """Returns a copy of this experiment, without hooks, that writes to another directory."""

    def _copy_model_with_directory(self, directory: str) -> Any:
        model = self._model
        return (
            model.copy_with_directory(directory) if hasattr(model, "copy_with_directory") else model
        )

    def _has_finished(self, step: int, result: Result | None) -> bool:
        """Returns whether `step` or `result` shows that the training has reached its bound."""
        del result
        return self.train_steps is not None and step >= self.train_steps

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.context.sleep(seconds)

    def _export(self, checkpoint: Path | None, result: Result | None) -> list[object]:
        """Calls each export strategy and returns the results; empty if there is no checkpoint."""
        if checkpoint is None:
            return []
        base = Path(self._model.model_dir) / "export"
        for strategy in self._strategies:
            (base / strategy.name).mkdir(parents=True, exist_ok=True)
        return [
            strategy.export(self._model, base / strategy.name, checkpoint, result)
            for strategy in self._strategies
        ]
