"""Base class of estimators and agents: model function, directory, checkpoints and exports."""

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

import structlog

from palestra.contract.names import ExportFormat
from workers.core.errors import WorkerError
from workers.core.protocols import Snapshotter
from workers.estimators.basic_hooks import NanTensorHook
from workers.estimators.checkpoints import (
    has_training_ended,
    latest_checkpoint,
    load_checkpoint,
    make_saver,
)
from workers.estimators.counter_hooks import (
    EpisodeCheckpointSaverHook,
    StepCheckpointSaverHook,
    StepCounterHook,
    StepLoggingTensorHook,
    StepSummarySaverHook,
)
from workers.estimators.run_config import RunConfig
from workers.estimators.summaries import SummaryWriter
from workers.estimators.training_services import Services
from workers.export.module_files import write_module
from workers.snapshot.snapshot_directory import LoadedSnapshot
from workers.supervised.learner import example_of, predict_module
from workers.supervised.model_function import ModelFn, ModelFunction
from workers.supervised.run_session import RunSession, SessionRunHook
from workers.supervised.variables import Variables

log: Final = structlog.get_logger()


class EstimatorNotTrainedError(WorkerError):
    """There is no checkpoint to evaluate, predict with or export.

    Train first, or set `model_dir` to the directory of a trained model.
    """


class ModelOwner:
    """A model function with its configuration and its directory of checkpoints.

    Args:
        model_fn: See `workers.supervised.model_function`.
        model_dir: Directory of the checkpoints; `None` uses `config.model_dir` or, if that is
            `None` too, a new directory in the system's temporary directory.
        config: Configuration; `None` for the defaults.
        params: Hyperparameters of the model function.

    Raises:
        TypeError: If the model function is not callable, or `config` or `params` has another type.
        ValueError: If the model function does not accept the arguments it is called with, or
            `model_dir` and `config.model_dir` differ.
    """

    def __init__(
        self,
        model_fn: ModelFn,
        model_dir: str | Path | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, object] | None = None,
    ) -> None:
        _check_types(model_fn, config, params)
        self._config = _set_model_dir(config or RunConfig(), model_dir)
        self._model_fn = model_fn
        self._params = None if params is None else deepcopy(dict(params))
        self._model = ModelFunction(model_fn, self._params, self._config, self.model_dir)
        self.services = Services()
        """Recorder, control and time source of trainings; a worker replaces them."""

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints, results and exports."""
        return self._config.model_dir or ""

    @property
    def config(self) -> RunConfig:
        """A copy of the configuration."""
        return deepcopy(self._config)

    @property
    def params(self) -> dict[str, Any]:
        """A copy of the hyperparameters."""
        return deepcopy(self._params or {})

    @property
    def global_step(self) -> int:
        """Updates of the newest checkpoint, 0 without one."""
        newest = self.latest_checkpoint()
        return 0 if newest is None else int(newest.name.rpartition("-")[2])

    def latest_checkpoint(self) -> Path | None:
        """Returns the path of the newest checkpoint; `None` if there is none."""
        return latest_checkpoint(self.model_dir)

    def has_training_ended(self) -> bool:
        """Returns whether the training of `model_dir` is over.

        See `workers.estimators.checkpoints.has_training_ended`.
        """
        return has_training_ended(self.model_dir)

    def copy_with_directory(self, model_dir: str | Path) -> Self:
        """Returns a copy of this object with another directory; no files are copied."""
        other = copy(self)
        other.move_to(str(model_dir))
        return other

    def move_to(self, model_dir: str) -> None:
        """Sets another directory; no files are copied."""
        self._config = replace(self._config, model_dir=model_dir)
        self._model = ModelFunction(self._model_fn, self._params, self._config, model_dir)

    def export(
        self,
        directory: str | Path,
        formats: Sequence[ExportFormat],
        checkpoint_path: str | Path | None = None,
    ) -> Path:
        """Writes the files that are needed to predict with a checkpoint.

        Args:
            directory: Output directory; created if it does not exist. Files in it are replaced.
            formats: See `workers.export.module_files.write_module`.
            checkpoint_path: Path of the checkpoint; `None` for the newest.

        Returns:
            The output directory.

        Raises:
            EstimatorNotTrainedError: If there is no checkpoint.
        """
        loaded = self._load(checkpoint_path)
        learner = loaded.state["agent"]
        module = predict_module(self._model, learner)
        description = {
            "params": self.params,
            "features": learner["features"],
            "global_step": loaded.manifest.update,
        }
        write_module(module, Path(directory), formats, description, example_of(learner["features"]))
        return Path(directory)

    def newest_snapshot(self) -> LoadedSnapshot | None:
        """Returns the newest checkpoint if this process is the chief, else `None`.

        The other processes of a cluster start from the beginning.
        """
        return load_checkpoint(self.model_dir) if self._config.is_chief else None

    def saver(self, session: RunSession) -> Snapshotter:
        """Returns the snapshotter that writes the checkpoints of a training."""
        function = self._model_fn
        qualname = getattr(function, "__qualname__", type(function).__name__)
        name = f"{getattr(function, '__module__', '')}:{qualname}"
        return make_saver(self._config, Path(self.model_dir), name, session.note_checkpoint)

    def _load(self, checkpoint_path: str | Path | None) -> LoadedSnapshot:
        loaded = load_checkpoint(self.model_dir, checkpoint_path)
        if loaded is None:
            raise EstimatorNotTrainedError(
                f"{self.model_dir} holds no checkpoint: train first, "
                "or set model_dir to where one is"
            )
        return loaded

    def _variables(self, loaded: LoadedSnapshot) -> Variables:
        variables = Variables(self._config.seed, self._config.device)
        variables.load_state_dict(loaded.state["agent"]["variables"])
        return variables

    def _default_hooks(self, given: Sequence[SessionRunHook]) -> list[SessionRunHook]:
        """Returns the hooks of every training.

        A divergence or checkpoint hook among `given` replaces the default one.
        """
        config = self._config
        hooks: list[SessionRunHook] = (
            [] if any(isinstance(hook, NanTensorHook) for hook in given) else [NanTensorHook()]
        )
        if config.log_step_count_steps:
            hooks.append(StepLoggingTensorHook(config.log_step_count_steps))
        if config.save_summary_steps:
            steps, writer = config.save_summary_steps, self._summaries()
            hooks += [
                StepSummarySaverHook(steps, writer=writer),
                StepCounterHook(steps, writer=writer),
            ]
        saver_types = StepCheckpointSaverHook | EpisodeCheckpointSaverHook
        if config.saves_checkpoints and not any(isinstance(hook, saver_types) for hook in given):
            hooks.append(self._checkpoint_hook())
        return hooks

    def _checkpoint_hook(self) -> SessionRunHook:
        """Returns the hook that requests checkpoints at the configured interval."""
        raise NotImplementedError

    def _summaries(self) -> SummaryWriter:
        return SummaryWriter(self.model_dir, writes_events=self._config.tensorboard)


def check_bounds(**bounds: int | None) -> None:
    """Raises ValueError if a bound is less than 1, or if both `x` and `max_x` are set."""
    for name, value in bounds.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}; None is no bound")
        if value is not None and bounds.get(f"max_{name}") is not None:
            raise ValueError(f"set {name} (further ones) or max_{name} (the total), not both")


def _check_types(model_fn: object, config: object, params: object) -> None:
    if not callable(model_fn):
        raise TypeError(
            f"model_fn must be a function of features and labels, not a {type(model_fn).__name__}"
        )
    if config is not None and not isinstance(config, RunConfig):
        raise TypeError(
            f"config must be a RunConfig or None, not a {type(config).__name__}: "
            "RunConfig(seed=1), for example"
        )
    if params is not None and not isinstance(params, Mapping):
        raise TypeError(
            f"params must be a mapping of names to values or None, not a {type(params).__name__}"
        )


def _set_model_dir(config: RunConfig, model_dir: str | Path | None) -> RunConfig:
    if model_dir is None:
        model_dir = config.model_dir or Path(tempfile.gettempdir()) / str(uuid.uuid4())
    elif config.model_dir is not None and Path(config.model_dir) != Path(model_dir):
        raise ValueError(
            f"model_dir is {model_dir}, but config.model_dir is {config.model_dir}: set one of them"
        )
    return replace(config, model_dir=str(model_dir))
