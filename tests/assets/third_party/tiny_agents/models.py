"""A third-party model function and input function for Palestra's estimators."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss

from workers.estimators import EstimatorSpec, Modes, get_module, minimize


def fit_line(features, labels, mode, params):
    """Model function that fits a line."""
    network = get_module("line", lambda: nn.Linear(1, 1))
    predicted = network(features)[:, 0]
    if not mode.has_labels:
        return EstimatorSpec(mode, {"results": predicted})
    loss = mse_loss(predicted, labels)
    train_op = (
        minimize(loss, lambda all_of: torch.optim.SGD(all_of, lr=params["rate"]))
        if mode is Modes.TRAIN
        else None
    )
    return EstimatorSpec(mode, {"results": predicted}, loss, train_op)


fit_line.parameters_schema = {
    "type": "object",
    "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.1}},
    "additionalProperties": False,
}


def yield_points(mode, params):
    """Yields points of y = 3x + 1: endless in training, one batch in evaluation."""
    rng = np.random.default_rng(params.get("seed", 0))
    while True:
        x = rng.uniform(-1, 1, (32, 1)).astype(np.float32)
        yield x, (3 * x[:, 0] + 1).astype(np.float32)
        if mode is not Modes.TRAIN:
            return
