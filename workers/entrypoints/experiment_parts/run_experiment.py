"""Runs an experiment with a schedule, by default the one for this process's task type."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from workers.entrypoints.experiment_parts.schedules import Schedules
from workers.estimators.run_config import MASTER, PARAMETER_SERVER, WORKER, RunConfig

SCHEDULES: Final = (
    "train",
    "evaluate",
    "continuous_eval",
    "continuous_eval_on_train_data",
    "train_and_evaluate",
    "continuous_train_and_evaluate",
    "continuous_train_and_eval",
    "run_std_server",
    "test",
)
"""Names of schedules."""

_BY_TASK: Final = {
    MASTER: "train_and_evaluate",
    "chief": "train_and_evaluate",
    WORKER: "train",
    PARAMETER_SERVER: "run_std_server",
}


def run_experiment(
    experiment_fn: Callable[[str], Schedules], output_dir: str | Path, schedule: str | None = None
) -> object:
    """Makes an experiment and runs one of its schedules.

    Args:
        experiment_fn: Called with the output directory; returns the experiment.
        output_dir: Output directory of the experiment; must not be empty text.
        schedule: A name of `SCHEDULES`. `None` is `train_and_evaluate`; in a cluster it depends on
            the task type: `train_and_evaluate` for `master` and `chief`, `train` for `worker`,
            `run_std_server` for `ps`.

    Returns:
        The return value of the schedule.

    Raises:
        ValueError: If `output_dir` is empty, the schedule is unknown, or `schedule` is `None` and
            the task type has no default schedule.
        TypeError: If `experiment_fn` is not callable or returns no experiment.
    """
    if not str(output_dir):
        raise ValueError("output_dir must not be empty")
    if not callable(experiment_fn):
        raise TypeError(f"experiment_fn must be callable, not {experiment_fn!r}")
    experiment = experiment_fn(str(output_dir))
    if not isinstance(experiment, Schedules):
        raise TypeError(
            "experiment_fn must return an Experiment or an RLExperiment, "
            f"not {type(experiment).__name__}"
        )
    name = default_schedule(experiment.config) if schedule is None else schedule
    if name not in SCHEDULES:
        raise ValueError(f"schedule: {name!r} is none of {', '.join(SCHEDULES)}")
    return getattr(experiment, name)()


def default_schedule(config: RunConfig) -> str:
    """Returns the default schedule for a configuration; see `run_experiment`.

    Raises:
        ValueError: If the task type has no default schedule.
    """
    if not config.is_distributed:
        return "train_and_evaluate"
    name = _BY_TASK.get(config.task_type or "")
    if name is None:
        raise ValueError(
            f"a task of type {config.task_type!r} has no schedule of its own: "
            f"name one of {', '.join(SCHEDULES)}"
        )
    return name
