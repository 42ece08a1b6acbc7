"""Errors of estimators and agents."""

from workers.core.errors import WorkerError


class EstimatorNotTrainedError(WorkerError):
    """There is no checkpoint to evaluate, to predict with or to export: train first, or name the
    right model_dir.
    """
