"""RMSprop (Tieleman & Hinton 2012, lecture 6.5) as a pure function of one flat vector."""

from typing import NamedTuple

import torch
from torch import Tensor


class RmspropState(NamedTuple):
    """State of the optimiser."""

    square: Tensor
    """float32 [P]: running mean of the gradient's square."""
    learning_rate: Tensor
    """float32 []."""


def rmsprop_start(
    parameters: Tensor, learning_rate: float, *, inside: bool = False
) -> RmspropState:
    """Returns the state before the first update.

    Args:
        parameters: float32 [P].
        learning_rate: Step size.
        inside: Begin the running mean at 1, as TensorFlow does, instead of 0.
    """
    square = torch.ones_like(parameters) if inside else torch.zeros_like(parameters)
    return RmspropState(square, torch.tensor(learning_rate, device=parameters.device))


def rmsprop(
    parameters: Tensor,
    gradient: Tensor,
    state: RmspropState,
    *,
    decay: float = 0.99,
    epsilon: float = 1e-8,
    inside: bool = False,
) -> tuple[Tensor, RmspropState]:
    """Returns the parameters and the state after one update.

    The arithmetic of `torch.optim.RMSprop`, or of TensorFlow's.

    Args:
        parameters: float32 [P].
        gradient: float32 [P].
        state: The state after the update before.
        decay: Of the running mean.
        epsilon: Added to the root of the running mean.
        inside: Add epsilon under the root instead (TensorFlow).
    """
    square = torch.addcmul(state.square * decay, gradient, gradient, value=1 - decay)
    root = (square + epsilon).sqrt() if inside else square.sqrt() + epsilon
    return parameters - state.learning_rate * gradient / root, state._replace(square=square)
