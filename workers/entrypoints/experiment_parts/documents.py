"""Creates an `Experiment` or an `RLExperiment` from a JSON document."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium as gym
from pydantic import Field, ValidationError

from palestra.contract.documents import Document
from palestra.contract.names import ExportFormat
from palestra.contract.wording import summarise_faults
from workers.core.errors import PartNotFoundError
from workers.core.types import JsonObject
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.estimator import Estimator
from workers.estimators.export_strategies import make_export_strategy
from workers.estimators.hook_registry import make_hooks
from workers.estimators.memories import MEMORIES, Memory
from workers.estimators.run_config import RunConfig
from workers.supervised.inputs import bound_input
from workers.supervised.models import model_function
from workers.supervised.modes import Modes
from workers.supervised.named_parts import find_part
from workers.supervised.run_session import SessionRunHook

AGENTS: Mapping[str, type[Agent]] = {"agent": Agent, "pg_agent": PGAgent}
"""Agent classes by name."""


class NamedPart(Document):
    """A registered part and its keyword arguments."""

    name: str
    params: JsonObject = Field(default_factory=dict)


class EnvironmentConfig(Document):
    """A Gymnasium environment and its keyword arguments."""

    id: str
    """ID registered with Gymnasium; `module:name` imports the module first."""
    params: JsonObject = Field(default_factory=dict)


class ExportConfig(Document):
    """An export strategy; see `make_export_strategy`."""

    name: str = "policy"
    formats: tuple[ExportFormat, ...] = ("weights", "program")
    exports_to_keep: int | None = 5


class ClusterConfig(Document):
    """The processes of a cluster; see `RunConfig`."""

    tasks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    task_type: str | None = None
    task_id: int | None = None
    master: str | None = None


class RunOptions(Document):
    """Options of a run, with the names and meanings of `RunConfig`."""

    seed: int = 0
    device: str = "cpu"
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: float | None = None
    save_checkpoints_episodes: int | None = None
    keep_checkpoint_max: int | None = 5
    save_summary_steps: int = 100
    log_step_count_steps: int = 100
    tensorboard: bool = False
    max_episode_steps: int | None = None
    cluster: ClusterConfig = ClusterConfig()


class _Scheduled(Document):
    """Fields of both kinds of experiments; see `Experiment`."""

    model_dir: str | None = None
    model: NamedPart
    """A registered model function and its parameters."""
    run: RunOptions = RunOptions()
    train_steps: int | None = None
    eval_steps: int | None = 10
    train_hooks: tuple[NamedPart, ...] = ()
    eval_hooks: tuple[NamedPart, ...] = ()
    eval_delay_secs: float = 0
    continuous_eval_throttle_secs: float = 60
    eval_every_n_steps: int | None = 1
    delay_workers_by_global_step: bool = False
    export_strategies: tuple[ExportConfig, ...] = ()
    train_steps_per_iteration: int | None = 100


class ExperimentConfig(_Scheduled):
    """An `Experiment` as a document."""

    train_input: NamedPart
    """A registered input function."""
    eval_input: NamedPart


class RLExperimentConfig(_Scheduled):
    """An `RLExperiment` as a document."""

    kind: str = "agent"
    """A key of `AGENTS`."""
    memory: NamedPart = NamedPart(name="memory")
    """`name` is a key of `MEMORIES`."""
    env: EnvironmentConfig
    train_episodes: int | None = None
    first_update: int = 5000
    update_frequency: int = 15


def create_experiment(
    experiment_config: ExperimentConfig | Mapping[str, object] | str,
) -> Experiment:
    """Creates a supervised experiment from a document.

    Args:
        experiment_config: The document, a mapping with its fields, or JSON text.

    Raises:
        ValueError: If the document is malformed; the message names the place.
        PartNotFoundError: If a model function, input function or hook is not registered; the
            message names it.
    """
    config = _read(ExperimentConfig, experiment_config)
    estimator = Estimator(
        model_function(config.model.name),
        config.model_dir,
        _run_config(config.run),
        config.model.params,
    )
    return Experiment(
        estimator,
        bound_input(config.train_input.name, Modes.TRAIN, config.train_input.params),
        bound_input(config.eval_input.name, Modes.EVAL, config.eval_input.params),
        **_options(config),
    )


def create_rl_experiment(
    experiment_config: RLExperimentConfig | Mapping[str, object] | str,
) -> RLExperiment:
    """Creates an RL experiment from a document.

    Each schedule of the experiment makes its own environment and closes it.

    Args:
        experiment_config: The document, a mapping with its fields, or JSON text.

    Raises:
        ValueError: If the document is malformed; the message names the place.
        PartNotFoundError: If an agent, environment, memory, model function or hook is not
            registered; the message names it.
    """
    config = _read(RLExperimentConfig, experiment_config)
    agent = find_part(config.kind, AGENTS, "agent")(
        model_function(config.model.name),
        _memory(config.memory),
        config.model_dir,
        _run_config(config.run),
        config.model.params,
    )
    return RLExperiment(
        agent,
        _environment(config.env),
        train_episodes=config.train_episodes,
        first_update=config.first_update,
        update_frequency=config.update_frequency,
        **_options(config),
    )


def _read(kind: Any, given: Any) -> Any:
    if isinstance(given, kind):
        return given
    try:
        return kind.model_validate_json(given if isinstance(given, str) else json.dumps(given))
    except ValidationError as error:
        raise ValueError(f"experiment_config: {summarise_faults(error, 'document')}") from None


def _run_config(run: RunOptions) -> RunConfig:
    cluster = run.cluster
    return RunConfig(
        **run.model_dump(exclude={"cluster"}),
        cluster=dict(cluster.tasks),
        task_type=cluster.task_type,
        task_id=cluster.task_id,
        master=cluster.master,
    )


def _options(config: _Scheduled) -> JsonObject:
    same = (
        "train_steps",
        "eval_steps",
        "eval_delay_secs",
        "continuous_eval_throttle_secs",
        "eval_every_n_steps",
        "delay_workers_by_global_step",
        "train_steps_per_iteration",
    )
    return {
        **{name: getattr(config, name) for name in same},
        "train_hooks": _hooks(config.train_hooks),
        "eval_hooks": _hooks(config.eval_hooks),
        "export_strategies": [
            make_export_strategy(one.name, one.formats, one.exports_to_keep)
            for one in config.export_strategies
        ],
    }


def _hooks(parts: tuple[NamedPart, ...]) -> list[SessionRunHook]:
    return make_hooks((part.name, part.params) for part in parts)


def _memory(part: NamedPart) -> Memory:
    make = find_part(part.name, MEMORIES, "memory")
    try:
        return make(**part.params)
    except TypeError as error:
        raise ValueError(f"memory {part.name}: {error}") from error


def _environment(config: EnvironmentConfig) -> Any:
    """Returns a function that makes the environment, after a check that its ID is registered."""
    try:
        gym.spec(config.id)
    except (ImportError, gym.error.Error) as error:
        raise PartNotFoundError(f"no environment is called {config.id!r} here: {error}") from error
    return partial(gym.make, config.id, **config.params)
