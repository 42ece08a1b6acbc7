"""Experiments, which train, evaluate and export an estimator or an agent by a schedule.

experiment = Experiment(estimator, train_input_fn, eval_input_fn, train_steps=1_000)
result, exports = experiment.train_and_evaluate()
"""

from workers.entrypoints.experiment_parts.documents import create_experiment, create_rl_experiment
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.run_experiment import run_experiment
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment

__all__ = [
    "Experiment",
    "RLExperiment",
    "create_experiment",
    "create_rl_experiment",
    "run_experiment",
]
